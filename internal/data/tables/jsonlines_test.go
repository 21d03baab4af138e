package tables

import (
	"bytes"
	"strings"
	"testing"
)

// TestALineThatIsTooLongIsNamed puts a long line before others, and checks that the reader does not
// search for its end.
func TestALineThatIsTooLongIsNamed(t *testing.T) {
	long := append([]byte("{}\n\""), bytes.Repeat([]byte("x"), maxLine)...)
	long = append(long, "\"\n{}\n"...)
	if _, err := JSONLines(long, 3, 2); err == nil || !strings.Contains(err.Error(), "line 2 has more than") {
		t.Errorf("%v", err)
	}

	last := append([]byte("\""), bytes.Repeat([]byte("x"), maxLine-2)...)
	last = append(last, '"')
	if batch, err := JSONLines(last, 0, 1); err != nil || batch.Next != len(last) {
		t.Errorf("a line of the greatest length: %v", err)
	}
}
