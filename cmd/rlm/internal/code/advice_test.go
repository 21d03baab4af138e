package code

import (
	"strings"
	"testing"
)

// TestWarningsNameTheirFiles checks stderr that arrives in pieces. A warning's reference to a
// snippet must be at the beginning of a line.
func TestWarningsNameTheirFiles(t *testing.T) {
	var out strings.Builder
	stderr := &namedWarnings{w: &out, files: []string{"a.py", "-"}}
	for _, piece := range []string{
		"<snippet 1>:2: UserWarning: careful\n  warn()\nsee ",
		"<snippet 1>:2: not a warning\n",
		"<snippet 2>:1: stdin\n<snippet 3>:1: unknown\n", "say <snippet 1>:2: ",
		"x\n<snippet 1>:9: late\n",
	} {
		if n, err := stderr.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("Write returned %d, %v", n, err)
		}
	}

	const want = "a.py:2: UserWarning: careful\n  warn()\nsee <snippet 1>:2: not a warning\n" +
		"<snippet 2>:1: stdin\n<snippet 3>:1: unknown\nsay <snippet 1>:2: x\na.py:9: late\n"
	if out.String() != want {
		t.Errorf("stderr is %q, want %q", out.String(), want)
	}
}
