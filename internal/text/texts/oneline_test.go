package texts

import (
	"strings"
	"testing"
)

func TestLongTextsOfASnippetAreCut(t *testing.T) {
	if got := OneLine(strings.Repeat("é", 500)); len(got) > maxLine+len("…") ||
		!strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, %q", len(got), got)
	}
}
