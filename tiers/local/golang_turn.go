package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local/gorun"
)

// goTurn is one snippet on its way through a program.
type goTurn struct {
	session *goSession
	program *goProgram
	number  int // of the snippet in the program
	limits  tiers.Limits
	out     goOutput
	calls   goCalls
	meter   goMeter
	final   *tiers.Final
}

// goEnding is how a turn ended: by the program's word, or by a limit, a death or
// a cancellation that cost the program its life.
type goEnding struct {
	end   *gorun.End
	limit tiers.Limit
	died  jail.Exit
	err   error
}

// turn prepares a snippet's turn; with a journal it is a replay, which the host
// hears nothing of.
func (s *goSession) turn(program *goProgram, number int, journal []answeredCall) *goTurn {
	t := &goTurn{session: s, program: program, number: number, limits: s.cfg.Limits}
	t.out.limit = t.limits.Output
	if number <= len(s.history) {
		t.calls.replay = map[string][]answeredCall{}
		for _, a := range journal {
			t.calls.replay[a.key()] = append(t.calls.replay[a.key()], a)
		}
	}
	return t
}

// tick is how often the limits are looked at.
const tick = 20 * time.Millisecond

// play runs the snippet. Unless the ending has an end, the program is no more.
func (t *goTurn) play(ctx context.Context) goEnding {
	callCtx, cancel := context.WithCancel(ctx)
	t.calls.begin(callCtx, t)
	t.meter.begin(t.limits, t.program.jail)
	t.program.streams.attach(&t.out)
	e := t.wait(ctx)
	t.meter.stop()
	cancel()
	if e.end == nil {
		t.program.end() // also frees calls that are writing their answers
	}
	t.calls.running.Wait()
	t.program.streams.attach(nil)
	return e
}

func (t *goTurn) wait(ctx context.Context) goEnding {
	body, err := json.Marshal(gorun.Run{Snippet: t.number})
	if err == nil {
		err = t.program.send(gorun.KindRun, body)
	}
	if err != nil {
		return goEnding{err: err, died: t.program.died()}
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case f, ok := <-t.program.frames:
			if !ok && t.program.broke {
				return goEnding{err: errProtocol, died: jail.Exit{Code: -1, Killed: true}}
			}
			if !ok {
				return goEnding{died: t.program.died()}
			}
			end, err := t.handle(f)
			if err != nil {
				return goEnding{err: err, died: jail.Exit{Code: -1, Killed: true}}
			}
			if end != nil {
				return goEnding{end: end}
			}
		case <-ticker.C:
			if limit := t.meter.over(); limit != "" {
				return goEnding{limit: limit}
			}
		case <-ctx.Done():
			return goEnding{err: context.Cause(ctx)}
		}
	}
}

// handle takes one frame of the program.
func (t *goTurn) handle(f goFrame) (*gorun.End, error) {
	switch f.kind {
	case gorun.KindCall:
		var call gorun.Call
		if err := strict(f.body, &call); err != nil {
			return nil, err
		}
		t.calls.start(call)
	case gorun.KindText:
		var question gorun.Question
		if err := strict(f.body, &question); err != nil {
			return nil, err
		}
		t.calls.ask(question)
	case gorun.KindFinal:
		var final gorun.Final
		if err := strict(f.body, &final); err != nil {
			return nil, err
		}
		if t.final == nil && final.Value != nil {
			t.final = &tiers.Final{Value: final.Value, Name: final.Name}
		}
	case gorun.KindEnd:
		var end gorun.End
		if err := strict(f.body, &end); err != nil {
			return nil, err
		}
		if end.Snippet != t.number || end.Verdict != gorun.OK && end.Verdict != gorun.Raised && end.Verdict != gorun.Exited {
			return nil, errProtocol
		}
		return &end, nil
	default:
		return nil, errProtocol
	}
	return nil, nil
}

// suffix is what names have that an older meaning keeps: only a snippet that
// runs again can print it.
var suffix = regexp.MustCompile(`__[0-9]+(_[0-9]+)?\b`)

// did is a hash of what the turn did, as far as it shows.
func (t *goTurn) did(e goEnding) [sha256.Size]byte {
	text := bytes.Join([][]byte{t.out.streams[0].Bytes(), t.out.streams[1].Bytes(), []byte(e.end.Verdict + e.end.Message)}, []byte{0})
	return sha256.Sum256(suffix.ReplaceAll(text, nil))
}

// result makes the result of a turn.
func (t *goTurn) result(e goEnding) tiers.Result {
	r := tiers.Result{
		Status: tiers.StatusOK, Stdout: t.out.streams[0].String(), Stderr: t.out.streams[1].String(),
		Dropped: t.out.dropped(), Final: t.final, Usage: t.meter.usage(),
	}
	r.Usage.HostCalls, r.Usage.OutputBytes = min(t.calls.made, t.limits.HostCalls), t.out.total
	r.Usage.PeakMemory = t.program.jail.Usage().PeakMemory
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
	switch {
	case r.Limit != "":
	case t.calls.refused:
		r.Limit = tiers.LimitHostCalls
	case r.Dropped > 0:
		r.Limit = tiers.LimitOutput
	}
	return r
}

func exited(r *tiers.Result, code int) {
	r.Status = tiers.StatusExited
	r.Exception = &tiers.Exception{
		Type: "exit", Message: fmt.Sprint(code), ExitCode: code, Traceback: fmt.Sprintf("exit status %d\n", code),
	}
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

// causeOf finds the line that says why the runtime gave up.
func causeOf(last string) (name, line string) {
	for _, d := range deaths {
		if before, after, ok := strings.Cut(last, d.says); ok {
			before = before[strings.LastIndexByte(before, '\n')+1:]
			after, _, _ = strings.Cut(after, "\n")
			return d.name, strings.ToValidUTF8(before+d.says+after[:min(len(after), 300)], "�")
		}
	}
	return "", ""
}

// cpuSignal is Linux's SIGXCPU, which package syscall does not name everywhere.
const cpuSignal = syscall.Signal(24)

// autopsy says why a program died. What it wrote last is hostile and decides on
// words only.
func (t *goTurn) autopsy(r *tiers.Result, e goEnding) {
	last := string(t.out.last)
	name, line := causeOf(last)
	if name == "" { // the list of goroutines may be long
		last = t.out.streams[1].String()
		name, line = causeOf(last)
	}
	if name == "" {
		line = e.died.String()
	}
	switch {
	case e.died.OOM || t.program.jail.OOM() || name == "memory":
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitMemory
		return
	case e.died.Signal == cpuSignal:
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
		Type: name, Message: strings.TrimPrefix(strings.TrimPrefix(line, "panic: "), "fatal error: "), Traceback: trace(last, line),
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

// goOutput keeps what a snippet writes, up to a limit.
type goOutput struct {
	limit   int64
	total   int64
	streams [2]bytes.Buffer
	sinks   [2]io.Writer
	last    []byte // of stderr, whatever the limit
}

// lastWords is how much is kept, at least, of what a program says in the end.
const lastWords = 256 << 10

func (o *goOutput) write(stream int, text []byte) {
	if stream == 1 {
		o.last = append(o.last, text...)
		if len(o.last) > 2*lastWords {
			o.last = append(o.last[:0], o.last[len(o.last)-lastWords:]...)
		}
	}
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

func (o *goOutput) dropped() int64 { return max(0, o.total-o.limit) }

// goMeter keeps the time of a turn. The time in which host calls are under way
// counts for nothing; the processor's time, where the jail counts it, always
// does, so that a snippet cannot compute for ever behind a slow call.
type goMeter struct {
	limits       tiers.Limits
	jail         *jail.Process
	begun, ended time.Time
	cpuFrom, cpu time.Duration

	mu       sync.Mutex // guards what follows
	pending  int
	waiting  time.Time
	hostWait time.Duration
}

func (m *goMeter) begin(limits tiers.Limits, p *jail.Process) {
	m.limits, m.jail, m.begun, m.cpuFrom = limits, p, time.Now(), time.Duration(p.Usage().CPUNanos)
}

// callBegins and callEnds bracket a host call.
func (m *goMeter) callBegins() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending == 0 {
		m.waiting = time.Now()
	}
	m.pending++
}

func (m *goMeter) callEnds() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending--; m.pending == 0 {
		m.hostWait += time.Since(m.waiting)
	}
}

// own is the time that the turn has taken without its host calls.
func (m *goMeter) own() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, wait := m.ended, m.hostWait
	if now.IsZero() {
		now = time.Now()
	}
	if m.pending > 0 {
		wait += now.Sub(m.waiting)
	}
	return max(0, now.Sub(m.begun)-wait)
}

// over looks at the clocks and returns the limit that is exceeded, if any.
func (m *goMeter) over() tiers.Limit {
	own := m.own()
	m.look()
	switch {
	case own > m.limits.Wall:
		return tiers.LimitWall
	case m.cpu > m.limits.Active, m.cpu == 0 && own > m.limits.Active: // if nobody counts, all time is
		return tiers.LimitActive
	}
	return ""
}

func (m *goMeter) look() {
	if used := time.Duration(m.jail.Usage().CPUNanos); used > m.cpuFrom {
		m.cpu = used - m.cpuFrom
	}
}

func (m *goMeter) stop() {
	m.ended = time.Now()
	m.look()
}

func (m *goMeter) usage() tiers.Usage {
	u := tiers.Usage{Wall: m.ended.Sub(m.begun), Active: m.own()}
	u.HostWait = u.Wall - u.Active
	if m.cpu > 0 && m.cpu < u.Active {
		u.Idle, u.Active = u.Active-m.cpu, m.cpu
	}
	return u
}
