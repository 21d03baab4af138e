package interp

import (
	"crypto/sha256"
	"fmt"

	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// past is what the session remembers of a turn.
func (t *turn) past(ordinal int, run wire.Run, end *wire.End) past {
	return past{
		ordinal: ordinal, run: run, journal: t.calls.Journal(), verdict: end.Verdict,
		printed: t.printed(), impure: end.Impure, took: t.meter.Own(),
	}
}

// printed is a hash of what the turn wrote.
func (t *turn) printed() [sha256.Size]byte { return t.out.Hash("", nil) }

// result makes the result of a turn.
func (t *turn) result(e ending) tiers.Result {
	r := tiers.Result{Status: tiers.StatusOK}
	switch {
	case e.end != nil && e.end.Verdict == wire.OK:
	case e.end != nil:
		r.Status = tiers.StatusRaised
		r.Exception = gohost.Mistake(e.end.Type, e.end.Message, e.end.Traceback)
	case e.limit != "":
		r.Status, r.Limit = tiers.StatusLimit, e.limit
	default:
		t.autopsy(&r, e)
	}
	gohost.Report(&r, &t.out, t.calls, &t.meter)
	switch {
	case e.end != nil:
		r.Usage.PeakMemory = max(r.Usage.PeakMemory, min(max(0, e.end.Memory), t.limits.Memory+overhead))
	default:
		r.Usage.PeakMemory = max(r.Usage.PeakMemory, t.worker.proc.Usage().PeakMemory)
	}
	return r
}

// autopsy says why a worker died. What it wrote last is hostile and decides on
// words only.
func (t *turn) autopsy(r *tiers.Result, e ending) {
	name, line := gohost.Cause(t.worker.proc.Output())
	if name == "" {
		name, line = "InterpreterCrash", e.died.String()
	}
	switch {
	case e.died.OOM || name == gohost.OutOfMemory:
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitMemory
		return
	case e.died.Signal == gohost.CPUSignal:
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitActive
		return
	case e.died.Killed && e.err != nil: // by us, for what it sent
		line = e.err.Error()
	}
	line = gohost.WithoutPrefix(line)
	r.Status = tiers.StatusCrashed
	r.Exception = &tiers.Exception{
		Type: name, Message: line,
		Traceback: fmt.Sprintf("the snippet broke its interpreter: %s\n", line),
	}
}
