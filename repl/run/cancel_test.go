package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
)

// TestARunEndsWhereverItIsCancelled cancels a run with sub-loops, typed calls, a compaction and a
// synthesis at each of its events in turn. It checks that the run reports the cancellation,
// completes its record, and leaves nothing behind.
func TestARunEndsWhereverItIsCancelled(t *testing.T) {
	gone := errors.New("the user has left")
	made := func() run.Config {
		m := &models{facts: llm.Facts{Window: 6_000}}
		m.sub = func(r llm.Request) (llm.Response, error) {
			if r.Schema != nil && len(r.Messages) < 2 {
				return llm.Response{Text: "perhaps"}, nil // is asked again
			}
			return llm.Response{Text: "yes"}, nil
		}
		m.byPurpose = func(r llm.Request) (llm.Response, bool) {
			switch {
			case r.Metadata.Depth == 1:
				return llm.Response{Text: code("FINAL(llm_query('of a sub-loop'))")}, true
			case r.Metadata.Purpose == "compaction" || r.Metadata.Purpose == "synthesis":
				return llm.Response{Text: "the gist"}, true
			case r.Metadata.Turn == 1:
				return llm.Response{
					Text: code("r = rlm_query_batched(['a', 'b'])\nprint('x' * 9000)"),
				}, true
			}
			return llm.Response{Text: code("print(filter_llm('?', [1, 2, 3]))")}, true
		}
		cfg := config(m, text(strings.Repeat("a", 500)))
		cfg.MaxTurns, cfg.CompactAt, cfg.MaxReply = 2, 0.5, 300
		return cfg
	}
	events := 1
	for at := 0; at < events; at++ {
		cfg := made()
		ctx, cancel := context.WithCancelCause(t.Context())
		var seen atomic.Int64
		cfg.Trace = fmt.Sprintf("%s/%d", t.TempDir(), at)
		cfg.Progress = func(ledger.Event) {
			if seen.Add(1) == int64(at) {
				cancel(gone)
			}
		}
		outcome, err := run.Run(ctx, cfg)
		cancel(nil)
		if at == 0 { // the whole of it
			events = int(seen.Load())
			if err != nil || outcome.Status != ledger.StatusSynthesised ||
				outcome.Compactions == 0 || outcome.Loops != 2 || events < 20 {
				t.Fatalf("%d events, %+v, %v", events, outcome, err)
			}
			continue
		}
		// The last steps may be complete already.
		if !errors.Is(err, gone) && (err != nil || at < events-2) ||
			errors.Is(err, gone) && outcome.Status != ledger.StatusCanceled {
			t.Errorf("at event %d of %d: %+v, %v", at, events, outcome, err)
		}
	}
}
