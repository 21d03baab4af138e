package pykernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/internal/inflight"
	"github.com/rlmhq/rlm/internal/protocol"
	"github.com/rlmhq/rlm/tiers"
)

// Session answers the requests of one sandbox's guest. It has one owner; only
// the host functions it calls run on goroutines of their own.
type Session struct {
	cfg     tiers.Config
	texts   []openText       // by id: the inputs' first, then files of directories
	files   map[openText]int // the number of each file of a directory
	paths   []string         // where the guest can read the inputs' files: see Show
	snippet int              // ordinal of the snippet that runs or ran last
	meter   meter
	calls   calls
	gate    *inflight.Gate
	out     output
	final   *tiers.Final
	raised  *report
	known   []tiers.Variable
	broken  error
	moving  moving
	// missing is what the snippet needs at run time and the tier lacks.
	missing    string
	rejectable bool
}

// openText is a text that the guest knows by number. One of a directory is opened
// again for each use: the directory keeps few of them open.
type openText struct {
	text *bigtext.Text
	dir  *bigtext.Dir
	path string
}

func (o openText) open() (*bigtext.Text, error) {
	if o.dir != nil {
		return o.dir.Open(o.path)
	}
	if o.text == nil {
		return nil, errRequest // the input is no text
	}
	return o.text, nil
}

// report is the guest's word on the exception that left a snippet.
type report struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Code      int    `json:"code"`
}

// NewSession returns the host's end of a new session. It reads the inputs as far
// as their lengths are needed, so it may take a while for a huge one.
func NewSession(ctx context.Context, cfg tiers.Config) (*Session, error) {
	if err := cfg.Limits.Validate(); err != nil {
		return nil, err
	}
	cfg.Limits = cfg.Limits.WithDefaults()
	s := &Session{cfg: cfg, texts: make([]openText, len(cfg.Inputs)), files: map[openText]int{}, gate: inflight.New(cfg.Limits)}
	for i, in := range cfg.Inputs {
		if err := checkInput(in); err != nil {
			return nil, fmt.Errorf("cannot use input %d (%s): %w", i, in.Name, err)
		}
		s.texts[i].text = in.Text
		if in.Text != nil {
			if _, err := in.Text.Len(ctx); err != nil {
				return nil, fmt.Errorf("cannot read input %d: %w", i, err)
			}
		}
	}
	if err := CheckFunctions(cfg.Functions); err != nil {
		return nil, err
	}
	return s, nil
}

// CheckFunctions reports the first host function whose name snippets cannot use.
func CheckFunctions(functions []tiers.Function) error {
	for _, f := range functions {
		if err := protocol.CheckName(f.Name); err != nil {
			return err
		}
	}
	return nil
}

func checkInput(in tiers.Input) error {
	set := 0
	for _, has := range []bool{in.Text != nil, in.Dir != nil, in.Value != nil} {
		if has {
			set++
		}
	}
	if set != 1 {
		return errors.New("set exactly one of Text, Dir and Value")
	}
	if in.Value != nil && !json.Valid(in.Value) {
		return errors.New("its value is not JSON")
	}
	return nil
}

// Show tells where the guest finds the file of each input, empty where it does
// not.
func (s *Session) Show(paths []string) { s.paths = paths }

// Configured reports whether the guest has to be told anything at its first
// run: see FlagConfigure.
func (s *Session) Configured() bool { return len(s.cfg.Inputs) > 0 || len(s.cfg.Functions) > 0 }

// Limits are the session's limits, complete.
func (s *Session) Limits() tiers.Limits { return s.cfg.Limits }

// Config is the session's configuration, its limits complete.
func (s *Session) Config() tiers.Config { return s.cfg }

// Snippet is the ordinal of the snippet that runs, or ran last.
func (s *Session) Snippet() int { return s.snippet }

// Continue makes s go on where a session stands that its guest is a copy of: it
// counts its snippets on and knows the same open texts.
func (s *Session) Continue(from *Session) {
	s.snippet = from.snippet
	s.texts = append([]openText(nil), from.texts...)
	s.files = maps.Clone(from.files)
}

// Begin starts the accounts of a snippet. It fails if an input has changed on
// disk: offsets would lie.
func (s *Session) Begin(ctx context.Context, job tiers.Job) error {
	if err := s.Changed(); err != nil {
		return err
	}
	s.snippet++
	s.final, s.raised, s.known, s.broken, s.missing = nil, nil, nil, nil, ""
	s.rejectable = job.Rejectable
	s.out.begin(s.cfg.Limits.Output, job.Stdout, job.Stderr)
	s.calls.begin(ctx, s.snippet)
	s.meter.begin(s.cfg.Limits)
	return nil
}

// Changed reports an input that has changed on disk since it was opened: what a
// snippet read of it may be wrong.
func (s *Session) Changed() error {
	for _, o := range s.texts {
		if o.text == nil {
			continue
		}
		if err := o.text.Changed(); err != nil {
			return err
		}
	}
	return nil
}

// Over fires a time limit that is used up, or the caller's interrupt, and reports
// what has fired, "" if nothing.
func (s *Session) Over() tiers.Limit {
	if s.Canceled() {
		s.meter.fire(interrupt)
	}
	return s.meter.check()
}

// interrupt stands for a limit when the caller gives up on a snippet: the snippet is
// asked to end as one that has used up its time.
const interrupt tiers.Limit = "interrupt"

// Interrupted reports whether the caller has given up on the snippet before it
// ended.
func (s *Session) Interrupted() bool { return s.meter.fired == interrupt }

// Fire records that a limit fired which the tier watches itself, and that the
// tier is stopping the snippet.
func (s *Session) Fire(limit tiers.Limit) { s.meter.fire(limit) }

// Refuse records that the guest was refused something for the sake of a limit
// and has been told by an exception.
func (s *Session) Refuse(limit tiers.Limit) { s.meter.refused = limit }

// Overdue is how long ago the limit fired that is stopping the snippet.
func (s *Session) Overdue() time.Duration { return time.Since(s.meter.over) }

// Canceled reports whether the caller has given up on the snippet.
func (s *Session) Canceled() bool { return s.calls.ctx.Err() != nil }

// End closes the snippet's accounts. code is what the guest's run returned.
func (s *Session) End(code int) tiers.Result {
	usage := s.meter.usage()
	s.calls.end()
	usage.HostCalls, usage.OutputBytes = s.calls.made, s.out.total
	r := tiers.Result{
		Stdout: s.out.streams[0].String(), Stderr: s.out.streams[1].String(),
		Dropped: s.out.dropped(), Final: s.final, Usage: usage, Variables: s.known,
	}
	r.Status = map[int]tiers.Status{codeOK: tiers.StatusOK, codeRaised: tiers.StatusRaised, codeExited: tiers.StatusExited}[code]
	if e := s.raised; e != nil && code != codeOK {
		r.Exception = &tiers.Exception{Type: e.Type, Message: e.Message, Traceback: e.Traceback, ExitCode: e.Code}
	}
	if r.Status == tiers.StatusExited && r.Exception == nil {
		r.Status = "" // the guest's run lied
	}
	s.settle(&r)
	return r
}

// settle tells an exception that a limit caused from one of the snippet's own.
func (s *Session) settle(r *tiers.Result) {
	fired := s.meter.fired
	if fired == interrupt {
		fired = "" // the caller knows
	}
	switch {
	case r.Status == "": // the guest's run did not return in order
		r.Status = tiers.StatusCrashed
		if fired != "" {
			r.Status, r.Limit = tiers.StatusLimit, fired
		}
	case r.Status == tiers.StatusRaised && fired != "" && causedBy(fired, r.Exception):
		r.Status, r.Limit = tiers.StatusLimit, fired
	case r.Status == tiers.StatusRaised && s.meter.refused != "" && causedBy(s.meter.refused, r.Exception):
		r.Status, r.Limit = tiers.StatusLimit, s.meter.refused
	case fired != "": // the snippet went on in spite of it
		r.Limit = fired
	case r.Dropped > 0:
		r.Limit = tiers.LimitOutput
	}
}

func causedBy(limit tiers.Limit, e *tiers.Exception) bool {
	if e == nil {
		return true
	}
	switch limit {
	case tiers.LimitMemory:
		return e.Type == "MemoryError"
	case tiers.LimitHostCalls:
		return e.Type == "_rlm.HostError"
	default:
		return e.Type == "KeyboardInterrupt" || e.Type == "_rlm.HostError" || e.Type == "asyncio.exceptions.CancelledError"
	}
}

// Handle answers one request. The request's bytes are not kept.
func (s *Session) Handle(req []byte) Reply {
	if len(req) == 0 || len(req) > maxRequest {
		return fail(errRequest)
	}
	op, body := req[0], req[1:]
	switch op {
	case 'o':
		return s.write(body)
	case 'c':
		return s.call(body)
	case 's':
		return s.start(body)
	case 'w':
		return s.wait(body)
	case 'x':
		return s.cancel(body)
	case 'z':
		return s.sleep(body)
	case 'f':
		return s.finish(body)
	case 'e':
		return s.raise(body)
	case 'v':
		return s.variables(body)
	case 'i':
		return s.describe()
	case 'j':
		return s.value(body)
	case 'd':
		return s.dir(body)
	case 't':
		return s.text(body)
	case 'p':
		return s.put(body)
	case 'g':
		return s.get(body)
	case 'l':
		return s.left(body)
	case 'n':
		return s.next(body)
	case 'r':
		return s.reject(body)
	}
	return fail(errRequest)
}

func (s *Session) write(body []byte) Reply {
	if len(body) == 0 || body[0] != '1' && body[0] != '2' {
		return fail(errRequest)
	}
	s.out.write(int(body[0]-'1'), body[1:])
	return Reply{ASCII: true}
}

// reject notes that the snippet needs a module, or another thing, that its tier
// has not. The answer "1" tells the guest to stop.
func (s *Session) reject(body []byte) Reply {
	if !s.rejectable || len(body) == 0 || len(body) > 200 {
		return ok("0")
	}
	if s.missing == "" {
		s.missing = string(body)
	}
	return ok("1")
}

// Missing is what the snippet turned out to need that its tier lacks, "" if
// nothing.
func (s *Session) Missing() string { return s.missing }

// Forget takes back the ordinal of a snippet that was rejected.
func (s *Session) Forget() { s.snippet-- }

func (s *Session) finish(body []byte) Reply {
	var f struct {
		Value json.RawMessage `json:"value"`
		Name  string          `json:"name"`
	}
	if err := json.Unmarshal(body, &f); err != nil || f.Value == nil {
		return fail(errRequest)
	}
	if s.final == nil {
		s.final = &tiers.Final{Value: f.Value, Name: f.Name}
	}
	return Reply{ASCII: true}
}

func (s *Session) raise(body []byte) Reply {
	var r report
	if err := json.Unmarshal(body, &r); err != nil {
		return fail(errRequest)
	}
	s.raised = &r
	return Reply{ASCII: true}
}

// Bounds on what a guest may say of its variables.
const (
	maxVariables = 300
	maxName      = 200 // bytes
)

// variables takes the list of the session's variables.
func (s *Session) variables(body []byte) Reply {
	var list [][2]string
	if json.Unmarshal(body, &list) != nil || len(list) > maxVariables {
		return fail(errRequest)
	}
	s.known = make([]tiers.Variable, 0, len(list))
	for _, v := range list {
		if len(v[0]) > maxName || len(v[1]) > maxName {
			return fail(errRequest)
		}
		s.known = append(s.known, tiers.Variable{Name: v[0], Kind: v[1]})
	}
	return Reply{ASCII: true}
}

// output keeps what a snippet writes, up to a limit.
type output struct {
	limit   int64
	total   int64
	streams [2]bytes.Buffer
	sinks   [2]io.Writer
}

func (o *output) begin(limit int64, stdout, stderr io.Writer) {
	*o = output{limit: limit, sinks: [2]io.Writer{stdout, stderr}}
}

func (o *output) write(stream int, b []byte) {
	room := max(0, o.limit-o.total)
	o.total += int64(len(b))
	if int64(len(b)) > room {
		b = b[:room]
	}
	if len(b) == 0 {
		return
	}
	o.streams[stream].Write(b)
	if sink := o.sinks[stream]; sink != nil {
		_, _ = sink.Write(b) // the caller's sink; the snippet cannot mend it
	}
}

func (o *output) dropped() int64 { return max(0, o.total-o.limit) }

// Print takes what the guest's own C code writes, which does not come by
// request.
func (s *Session) Print(stderr bool, b []byte) {
	stream := 0
	if stderr {
		stream = 1
	}
	s.out.write(stream, b)
}

// Broke records that the session itself failed, not the snippet: an input
// vanished, say.
func (s *Session) Broke(err error) { s.broken = err }

// Broken is what Broke recorded in the current snippet.
func (s *Session) Broken() error { return s.broken }
