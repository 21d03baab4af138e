package run

import (
	"fmt"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/tiers"
)

// failures counts consecutive turns of a loop that fail in the same way.
type failures struct {
	last string // the text that distinguishes failures
	why  string // for the user
	n    int
}

// add counts a turn without an answer. Before the last attempt it warns the model.
func (f *failures) add(done *turns.Turn, most int, limits tiers.Limits) {
	text := done.Failure()
	if text != f.last {
		f.last, f.n = text, 0
	}
	if text == "" {
		return
	}
	f.why = done.Explain(limits)
	if f.n++; f.n > 1 && f.n == most-1 {
		done.Notes = append(done.Notes, fmt.Sprintf("This is the same failure %d times in a row. "+
			"Do something else: after the next one the run ends.", f.n))
	}
}

// isStuck reports whether the number of turns that failed in the same way reached the limit of a
// run; 0 allows any number.
func (f *failures) isStuck(most int) bool { return most > 0 && f.n >= most }

// describe explains why the run ended.
func (f *failures) describe() string {
	return fmt.Sprintf("the same failure occurred %d times in a row: %s", f.n, texts.Truncate(f.why, 500))
}
