package interp

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"syscall"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// past is what the session remembers of a turn.
func (t *turn) past(ordinal int, run wire.Run, end *wire.End) past {
	return past{
		ordinal: ordinal, run: run, journal: t.calls.journal, verdict: end.Verdict,
		printed: t.printed(), impure: end.Impure, took: t.meter.own(),
	}
}

// printed is a hash of what the turn wrote.
func (t *turn) printed() [sha256.Size]byte {
	return sha256.Sum256(append(t.out.streams[0].Bytes(), t.out.streams[1].Bytes()...))
}

// result makes the result of a turn.
func (t *turn) result(e ending) tiers.Result {
	r := tiers.Result{
		Status: tiers.StatusOK, Stdout: t.out.streams[0].String(), Stderr: t.out.streams[1].String(),
		Dropped: t.out.dropped(), Final: t.final, Usage: t.meter.usage(),
	}
	r.Usage.HostCalls, r.Usage.OutputBytes = min(t.calls.made, t.limits.HostCalls), t.out.total
	switch {
	case e.end != nil && e.end.Verdict == wire.OK:
	case e.end != nil:
		r.Status = tiers.StatusRaised
		r.Exception = &tiers.Exception{Type: e.end.Type, Message: e.end.Message, Traceback: e.end.Traceback}
	case e.limit != "":
		r.Status, r.Limit = tiers.StatusLimit, e.limit
	default:
		t.autopsy(&r, e)
	}
	switch {
	case e.end != nil:
		r.Usage.PeakMemory = max(r.Usage.PeakMemory, min(max(0, e.end.Memory), t.limits.Memory+overhead))
	default:
		r.Usage.PeakMemory = max(r.Usage.PeakMemory, t.worker.proc.Usage().PeakMemory)
	}
	switch {
	case r.Limit != "":
	case t.calls.refused:
		r.Limit = tiers.LimitHostCalls
	case r.Dropped > 0:
		r.Limit = tiers.LimitOutput
	}
	return r
}

// deaths are how the Go runtime announces that it gives up, and what that is
// called in a result. Only memory is a limit.
var deaths = []struct{ says, name string }{
	{"out of memory", "memory"},
	{"cannot allocate memory", "memory"},
	{"stack exceeds", "StackOverflow"},
	{"fatal error: ", "FatalError"},
	{"panic: ", "panic"},
}

// cpuSignal is Linux's SIGXCPU, which package syscall does not name everywhere.
const cpuSignal = syscall.Signal(24)

// autopsy says why a worker died. What it wrote last is hostile and decides on
// words only.
func (t *turn) autopsy(r *tiers.Result, e ending) {
	last := t.worker.proc.Output()
	name, line := "InterpreterCrash", e.died.String()
	for _, d := range deaths {
		if at := bytes.Index(last, []byte(d.says)); at >= 0 {
			name, line = d.name, lineAt(last, at)
			break
		}
	}
	switch {
	case e.died.OOM || name == "memory":
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitMemory
		return
	case e.died.Signal == cpuSignal:
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitActive
		return
	case e.died.Killed && e.err != nil: // by us, for what it sent
		line = e.err.Error()
	}
	line = strings.TrimPrefix(strings.TrimPrefix(line, "panic: "), "fatal error: ")
	r.Status = tiers.StatusCrashed
	r.Exception = &tiers.Exception{
		Type: name, Message: line,
		Traceback: fmt.Sprintf("the snippet broke its interpreter: %s\n", line),
	}
}

// lineAt is the line of text that holds byte at, cut to a few hundred bytes.
func lineAt(text []byte, at int) string {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	end := len(text)
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		end = at + n
	}
	return strings.ToValidUTF8(string(text[start:min(end, start+300)]), "�")
}

// lastLine is the last line that a process wrote.
func lastLine(text []byte) string {
	text = bytes.TrimSpace(text)
	return lineAt(text, len(text))
}
