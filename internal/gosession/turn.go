package gosession

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
)

// turn is one snippet on its way through a program.
type turn struct {
	session *Session
	program Program
	number  int // of the snippet in the program
	limits  tiers.Limits
	out     output
	calls   *gohost.Calls
	meter   gohost.Meter
}

// ending is how a turn ended: by the program's word, or by a limit, a death or
// a cancellation that cost the program its life.
type ending struct {
	end   *gorun.End
	limit tiers.Limit
	died  jail.Exit
	err   error
}

// turn prepares a snippet's turn.
func (s *Session) turn(program Program, number int) *turn {
	t := &turn{session: s, program: program, number: number, limits: s.host.Config.Limits}
	t.out.Limit = t.limits.Output
	return t
}

// tick is how often the limits are looked at.
const tick = 20 * time.Millisecond

// play runs the snippet, a replay if there is a journal. Unless the ending has an
// end, the program is no more.
func (t *turn) play(ctx context.Context, journal []gohost.Answered) ending {
	callCtx, cancel := context.WithCancel(ctx)
	t.calls = t.session.host.Turn(callCtx, t.session.snippet, journal)
	t.calls.Meter = &t.meter
	t.calls.Reply = func(id uint64, value []byte, err error) error {
		return t.program.Send(gorun.KindAnswer, gorun.AppendAnswer(id, value, err))
	}
	t.meter.Begin(t.limits, t.program)
	t.program.Attach(t.out.write)
	e := t.wait(ctx)
	t.meter.Stop()
	cancel()
	if e.end == nil {
		t.program.End() // also frees calls that are writing their answers
	}
	t.calls.Wait()
	t.program.Attach(nil)
	if e.end != nil && t.calls.Deaf() {
		t.program.End()
		return ending{err: gohost.ErrProtocol, died: jail.Exit{Code: -1, Killed: true}}
	}
	return e
}

func (t *turn) wait(ctx context.Context) ending {
	body, err := json.Marshal(gorun.Run{Snippet: t.number})
	if err == nil {
		err = t.program.Send(gorun.KindRun, body)
	}
	if err != nil {
		return ending{err: err, died: t.program.Died()}
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case f, ok := <-t.program.Frames():
			if !ok && t.program.Broke() {
				return ending{err: gohost.ErrProtocol, died: jail.Exit{Code: -1, Killed: true}}
			}
			if !ok {
				return ending{died: t.program.Died()}
			}
			if f.Stream > 0 {
				t.out.write(f.Stream-1, f.Body)
				continue
			}
			end, err := t.handle(f)
			if err != nil {
				return ending{err: err, died: jail.Exit{Code: -1, Killed: true}}
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

// handle takes one frame of the program.
func (t *turn) handle(f Frame) (*gorun.End, error) {
	if handled, err := t.calls.Handle(f.Kind, f.Body); handled {
		return nil, err
	}
	if f.Kind != gorun.KindEnd {
		return nil, gohost.ErrProtocol
	}
	var end gorun.End
	if err := gorun.Decode(f.Body, &end); err != nil {
		return nil, err
	}
	if end.Snippet != t.number || end.Verdict != gorun.OK && end.Verdict != gorun.Raised && end.Verdict != gorun.Exited {
		return nil, gohost.ErrProtocol
	}
	return &end, nil
}

// suffix is what names have that an older meaning keeps: only a snippet that
// runs again can print it.
var suffix = regexp.MustCompile(`__[0-9]+(_[0-9]+)?\b`)

// canonical takes such names' suffixes away.
func canonical(text []byte) []byte { return suffix.ReplaceAll(text, nil) }

// did is a hash of what the turn did, as far as it shows.
func (t *turn) did(e ending) [sha256.Size]byte {
	return t.out.Hash(e.end.Verdict+e.end.Message, canonical)
}

// result makes the result of a turn.
func (t *turn) result(e ending) tiers.Result {
	r := tiers.Result{Status: tiers.StatusOK}
	switch {
	case e.end != nil && e.end.Verdict == gorun.OK:
	case e.end != nil && e.end.Verdict == gorun.Exited:
		exited(&r, e.end.Code)
	case e.end != nil:
		r.Status = tiers.StatusRaised
		r.Exception = &tiers.Exception{Type: e.end.Type, Message: e.end.Message, Traceback: e.end.Traceback}
	case e.limit != "":
		r.Status, r.Limit = tiers.StatusLimit, e.limit
	default:
		t.autopsy(&r, e)
	}
	gohost.Report(&r, &t.out.Output, t.calls, &t.meter)
	r.Usage.PeakMemory = t.program.Usage().PeakMemory
	return r
}

func exited(r *tiers.Result, code int) {
	r.Status = tiers.StatusExited
	r.Exception = &tiers.Exception{
		Type: "exit", Message: fmt.Sprint(code), ExitCode: code, Traceback: fmt.Sprintf("exit status %d\n", code),
	}
}

// autopsy says why a program died. What it wrote last is hostile and decides on
// words only.
func (t *turn) autopsy(r *tiers.Result, e ending) {
	last := t.out.last
	name, line := gohost.Cause(last)
	if name == "" { // the list of goroutines may be long
		last = []byte(t.out.Text(1))
		name, line = gohost.Cause(last)
	}
	if name == "" {
		line = e.died.String()
	}
	switch {
	case e.died.OOM || t.program.OOM() || name == gohost.OutOfMemory:
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitMemory
		return
	case e.died.Signal == gohost.CPUSignal:
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitActive
		return
	case name == "" && e.err == nil && e.died.Signal == 0 && e.died.Code >= 0:
		exited(r, e.died.Code) // by a way round os.Exit
		return
	case name == "":
		name = "Crash"
	}
	if e.err != nil && e.died.Killed {
		line = e.err.Error()
	}
	r.Status = tiers.StatusCrashed
	r.Exception = &tiers.Exception{
		Type: name, Message: gohost.WithoutPrefix(line), Traceback: trace(string(last), line),
	}
}

// trace is the part of a dying runtime's last words that tells of the snippets.
func trace(last, line string) string {
	var b strings.Builder
	b.WriteString(line + "\n")
	lines := strings.Split(last, "\n")
	for i := 1; i < len(lines) && b.Len() < 4096; i++ {
		at, ok := strings.CutPrefix(lines[i], "\t")
		if at = strings.TrimPrefix(at, "./"); ok && strings.HasPrefix(at, "snippet_") {
			at, _, _ = strings.Cut(at, " ")
			name, _, _ := strings.Cut(lines[i-1], "(")
			fmt.Fprintf(&b, "%s(...)\n\t%s\n", suffix.ReplaceAllString(strings.Replace(name, "main.rlm__", "main.main__", 1), ""), at)
		}
	}
	return b.String()
}

// output also keeps what a program says in the end.
type output struct {
	gohost.Output
	last []byte // of stderr, whatever the limit
}

// lastWords is how much is kept of it, at least.
const lastWords = 256 << 10

func (o *output) write(stream int, text []byte) {
	if stream == 1 {
		o.last = append(o.last, text...)
		if len(o.last) > 2*lastWords {
			o.last = append(o.last[:0], o.last[len(o.last)-lastWords:]...)
		}
	}
	o.Write(stream, text)
}
