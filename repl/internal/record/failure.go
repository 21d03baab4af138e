package record

import (
	"strings"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// HasFailed reports whether the code ended early.
func HasFailed(s *ledger.Snippet) bool { return s.Status != tiers.StatusOK }

// FormatFailure returns the exception on one line, or "" if there was none.
func FormatFailure(s *ledger.Snippet) string {
	if s.Exception == nil {
		return ""
	}
	return s.Exception.Type + ": " + texts.Truncate(s.Exception.Message, 500)
}

// FormatTraceback returns the exception, with its traceback if it has one, or "" if there was no
// exception.
func FormatTraceback(s *ledger.Snippet) string {
	switch {
	case s.Exception == nil:
		return ""
	case s.Exception.Traceback != "":
		return s.Exception.Traceback
	}
	return strings.TrimRight(s.Exception.Type+": "+s.Exception.Message, ": ")
}
