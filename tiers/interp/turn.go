package interp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// turn is one snippet on its way through a worker.
type turn struct {
	box    *sandbox
	worker *worker
	limits tiers.Limits
	out    output
	calls  calls
	final  *tiers.Final
	meter  meter
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

// play runs a snippet. Unless the result has an end, the worker is destroyed.
func (t *turn) play(ctx context.Context, run wire.Run) ending {
	callCtx, cancel := context.WithCancel(ctx)
	t.calls.begin(callCtx, t)
	e := t.wait(ctx, run)
	t.meter.stop()
	cancel()
	if e.end == nil {
		exit := t.worker.destroy() // also frees calls that are writing their answers
		if e.died == nil {
			e.died = &exit
		}
	}
	t.calls.running.Wait()
	return e
}

func (t *turn) wait(ctx context.Context, run wire.Run) ending {
	t.meter.begin(t.limits, t.worker.proc)
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
			if limit := t.meter.over(); limit != "" {
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
	switch f.kind {
	case wire.KindOutput:
		stream, text, err := wire.ParseOutput(f.body)
		if err == nil {
			t.out.write(stream, text)
		}
		return nil, err
	case wire.KindCall:
		var call wire.Call
		if err := wire.Decode(f.body, &call); err != nil {
			return nil, err
		}
		t.calls.start(call)
	case wire.KindText:
		var question wire.Text
		if err := wire.Decode(f.body, &question); err != nil {
			return nil, err
		}
		t.calls.ask(question)
	case wire.KindFinal:
		var final wire.Final
		if err := wire.Decode(f.body, &final); err != nil {
			return nil, err
		}
		if t.final == nil && final.Value != nil {
			t.final = &tiers.Final{Value: final.Value, Name: final.Name}
		}
	case wire.KindEnd:
		var end wire.End
		if err := wire.Decode(f.body, &end); err != nil {
			return nil, err
		}
		return &end, nil
	default:
		return nil, errProtocol
	}
	return nil, nil
}

// output keeps what a snippet writes, up to a limit.
type output struct {
	limit   int64
	total   int64
	streams [2]bytes.Buffer
	sinks   [2]io.Writer
}

func (o *output) write(stream int, text []byte) {
	room := max(0, o.limit-o.total)
	o.total += int64(len(text))
	if int64(len(text)) > room {
		text = text[:room]
	}
	if len(text) == 0 {
		return
	}
	o.streams[stream].Write(text)
	if sink := o.sinks[stream]; sink != nil {
		_, _ = sink.Write(text) // the caller's sink; the snippet cannot mend it
	}
}

func (o *output) dropped() int64 { return max(0, o.total-o.limit) }
