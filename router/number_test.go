package router

import (
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// TestAnInvalidSnippetOfGoHasItsNumber checks the snippet's number in exceptions from the Go
// analyser.
func TestAnInvalidSnippetOfGoHasItsNumber(t *testing.T) {
	x := &tiers.Exception{Message: "snippet.go:1:6: a", Traceback: "snippet.go:1:6: a\nsnippet.go:2:1: snippet.go:3\n"}
	x = Policy{}.Plan(Verdict{Invalid: x}, nil, Standing{Language: tiers.Go, Ran: 1}).Exception
	if x.Message != "snippet_2.go:1:6: a" ||
		x.Traceback != "snippet_2.go:1:6: a\nsnippet_2.go:2:1: snippet.go:3\n" {
		t.Errorf("%+v", x)
	}
}
