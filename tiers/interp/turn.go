package interp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// turn is one snippet on its way through a worker.
type turn struct {
	worker *worker
	limits tiers.Limits
	out    gohost.Output
	calls  *gohost.Calls
	meter  gohost.Meter
}

// ending is how a turn ended: by the worker's word, or by a limit, a death or a
// cancellation that cost the worker its life.
type ending struct {
	end   *wire.End
	limit tiers.Limit
	died  *jail.Exit
	err   error // the caller's context, or the connection
}

// tick is how often the limits are looked at, beyond the wall limit's own timer.
const tick = 20 * time.Millisecond

// play runs a snippet, a replay if there is a journal. Unless the result has an
// end, the worker is destroyed.
func (s *sandbox) play(ctx context.Context, t *turn, run wire.Run, journal []gohost.Answered) ending {
	callCtx, cancel := context.WithCancel(ctx)
	t.calls = s.host.Turn(callCtx, s.snippet, journal)
	t.calls.Meter = &t.meter
	t.calls.Reply = func(id uint64, value []byte, err error) error {
		return t.worker.send(wire.KindAnswer, gorun.AppendAnswer(id, value, err))
	}
	e := t.wait(ctx, run)
	t.meter.Stop()
	cancel()
	if e.end == nil {
		exit := t.worker.destroy() // also frees calls that are writing their answers
		if e.died == nil {
			e.died = &exit
		}
	}
	t.calls.Wait()
	if e.end != nil && t.calls.Deaf() {
		exit := t.worker.destroy()
		return ending{err: gohost.ErrProtocol, died: &exit}
	}
	return e
}

func (t *turn) wait(ctx context.Context, run wire.Run) ending {
	t.meter.Begin(t.limits, t.worker.proc)
	body, err := json.Marshal(run)
	if err == nil {
		err = t.worker.send(wire.KindRun, body)
	}
	if err != nil {
		return t.broken(err)
	}
	ticker := time.NewTicker(min(tick, max(t.limits.Wall, time.Millisecond)))
	defer ticker.Stop()
	for {
		select {
		case f, ok := <-t.worker.frames:
			if !ok {
				return t.broken(t.worker.failure)
			}
			end, err := t.handle(f)
			if err != nil {
				return ending{err: err, died: &jail.Exit{Code: -1, Killed: true}}
			}
			if end != nil {
				return ending{end: end}
			}
		case <-ticker.C:
			if limit := t.meter.Over(); limit != "" {
				return ending{limit: limit}
			}
		case <-ctx.Done():
			return ending{err: context.Cause(ctx)}
		}
	}
}

// broken is the ending of a worker whose connection ended.
func (t *turn) broken(err error) ending {
	exit := t.worker.died()
	return ending{died: &exit, err: err}
}

// handle takes one frame of the worker.
func (t *turn) handle(f frame) (*wire.End, error) {
	if handled, err := t.calls.Handle(byte(f.kind), f.body); handled {
		return nil, err
	}
	switch f.kind {
	case wire.KindOutput:
		stream, text, err := wire.ParseOutput(f.body)
		if err == nil {
			t.out.Write(stream, text)
		}
		return nil, err
	case wire.KindEnd:
		var end wire.End
		err := gorun.Decode(f.body, &end)
		return &end, err
	default:
		return nil, gohost.ErrProtocol
	}
}
