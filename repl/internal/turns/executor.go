package turns

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// Executor runs the code in a loop's replies and reports it. It belongs to one loop.
type Executor struct {
	Session *loopsession.Session
	// Tell receives the events, without the position in the tree.
	Tell func(ledger.Event)
	// Limits are the session's limits, for the events.
	Limits tiers.Limits

	broken int    // consecutive failures of tiers
	seen   string // the end of the output of earlier turns
}

// maxSeen bounds the kept output of earlier turns, in bytes.
const maxSeen = 256 << 10

// maxBroken is the number of consecutive breaks of a tier at which a loop gives up.
const maxBroken = 3

// Execute runs a reply's code and emits an event for each snippet. If a tier breaks, the feedback
// reports it, because the code may have caused it. After maxBroken consecutive breaks, Execute
// returns the error.
func (x *Executor) Execute(ctx context.Context, reply Reply) (Turn, error) {
	done, err := execute(ctx, x.Session, reply, x.seen)
	x.seen += "\n" + done.output()
	x.seen = x.seen[max(0, len(x.seen)-maxSeen):]
	for i := range done.Ran {
		ran := &done.Ran[i]
		failure := record.FormatFailure(ran)
		if ran.Status == tiers.StatusLimit {
			failure = explainLimit(ran.Limit, x.Limits)
		}
		x.Tell(ledger.Event{
			Kind:    ledger.EventSnippet,
			Text:    ran.Source,
			Tier:    ran.Tier,
			Status:  string(ran.Status),
			Elapsed: ran.Elapsed,
			Error:   failure,
			Ran:     ran,
		})
	}

	var broken *tiers.BrokenError
	if err == nil || ctx.Err() != nil || !errors.As(err, &broken) {
		x.broken = 0
		return done, err
	}
	x.Tell(ledger.Event{Kind: ledger.EventWarning, Error: err.Error()})
	if x.broken++; x.broken >= maxBroken {
		return done, err
	}

	done.Broke, done.why = true, "the sandbox broke: "+texts.Truncate(err.Error(), 500)
	done.Notes = append(done.Notes,
		"The sandbox broke while it ran your code; variables may be gone, see SHOW_VARS(). "+
			texts.Truncate(err.Error(), 500))
	return done, nil
}
