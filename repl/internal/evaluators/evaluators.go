// Package evaluators runs what has no bounds of its own, templates and programs in
// Lua and Prolog, each in a jail of its own.
//
// A [Jail] is a jailed process of this very binary for each request: it gets one
// request, gives one reply and ends. Neither files nor network nor processes are
// to be had in it; time, memory and the size of the reply are bounded from
// outside. So a template that doubles a text for ever, a Lua pattern that
// backtracks for ever and a Prolog program that calls halt/0 end the process they
// run in, and nothing else.
//
// The process is hostile once its program runs: the reply is bounded and decoded
// strictly.
package evaluators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/frame"
	"github.com/rlmhq/rlm/internal/jail"
)

// Defaults and bounds of a Jail.
const (
	DefaultWall   = 10 * time.Second
	DefaultMemory = 128 << 20

	maxRequest = 32 << 20 // bytes of JSON
	maxReply   = 8 << 20
	overhead   = 64 << 20         // what the process holds before it runs anything
	readyIn    = 30 * time.Second // how long it may take to start
	endIn      = 10 * time.Second // and to die
)

// Jail says within which bounds programs run. The zero value has the defaults.
type Jail struct {
	// Wall bounds the time of one request, Memory its memory in bytes.
	Wall   time.Duration
	Memory int64
}

// Kind says how a program ended that did not do its work.
type Kind string

// How programs end.
const (
	Syntax Kind = "a syntax error"
	Raised Kind = "an error"
	Time   Kind = "the limit of time"
	Memory Kind = "the limit of memory"
	Size   Kind = "the limit of size"
	Died   Kind = "the end of its interpreter"
)

// known reports whether a worker may say that a program ended so.
func (k Kind) known() bool { return k == Syntax || k == Raised || k == Size }

// ProgramError is how a program ended that did not do its work. Message is
// written by the program, as far as it is not about a limit.
type ProgramError struct {
	Kind    Kind
	Message string
}

// Error says how the program ended.
func (e *ProgramError) Error() string { return string(e.Kind) + ": " + e.Message }

// BrokenError says that there was no jail to be had, or that one broke.
type BrokenError struct{ Err error }

// Error says what broke.
func (e *BrokenError) Error() string { return "cannot run it in a jail: " + e.Err.Error() }

// Unwrap returns what broke.
func (e *BrokenError) Unwrap() error { return e.Err }

// Mistake is what is wrong with a template.
type Mistake struct {
	// Index is which of the texts, Line where in it, from 1.
	Index   int    `json:"index"`
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// IsTemplate reports whether a text has anything for a template to do.
func IsTemplate(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "{%") ||
		strings.Contains(text, "{#")
}

// HasTemplate reports whether a value, as encoding/json knows it, has a template
// among its texts. Keys are none.
func HasTemplate(value any) bool {
	switch v := value.(type) {
	case string:
		return IsTemplate(v)
	case map[string]any:
		for _, member := range v {
			if HasTemplate(member) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if HasTemplate(item) {
				return true
			}
		}
	}

	return false
}

// Render renders the templates in a value over some variables. A text that is one
// expression alone becomes its value.
func (j Jail) Render(ctx context.Context, value any, variables map[string]any) (any, error) {
	return j.value(ctx, request{Task: taskRender, Value: value, Variables: variables})
}

// CheckTemplates returns what is wrong with some templates, at most one mistake
// for each.
func (j Jail) CheckTemplates(ctx context.Context, texts []string) ([]Mistake, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	r, err := j.run(ctx, request{Task: taskCheck, Texts: texts})
	if err != nil {
		return nil, err
	}

	for _, m := range r.Mistakes {
		if m.Index < 0 || m.Index >= len(texts) || m.Line < 1 {
			return nil, &BrokenError{errReply}
		}
	}
	return r.Mistakes, nil
}

// Lua runs a Lua program. It finds each variable as a global; its result is what
// it returns, else its global called result. It has the base library, math, string
// and table, without what loads code from elsewhere.
func (j Jail) Lua(ctx context.Context, source string, variables map[string]any) (any, error) {
	return j.value(ctx, request{Task: taskLua, Source: source, Variables: variables})
}

// Prolog runs a Prolog program. It finds the variable output as output(X) and the
// members of the variable state as state(Key, X); texts are atoms, objects
// json([Key=Value, ...]), into which get/3 looks. Clauses make the program; a term
// that is a directive, a query, a conjunction or disjunction, or a call of return/2
// is a goal. Goals run in order, each for its first solution. The result is an
// object of what return(Key, Value) was given.
func (j Jail) Prolog(ctx context.Context, source string, variables map[string]any) (any, error) {
	return j.value(ctx, request{Task: taskProlog, Source: source, Variables: variables})
}

func (j Jail) value(ctx context.Context, q request) (any, error) {
	r, err := j.run(ctx, q)
	if err != nil {
		return nil, err
	}
	value, err := decodeValue(r.Value)
	if err != nil {
		return nil, &BrokenError{err}
	}

	return value, nil
}

// run has one request answered.
func (j Jail) run(ctx context.Context, q request) (r reply, err error) {
	if j.Wall == 0 {
		j.Wall = DefaultWall
	}
	if j.Memory == 0 {
		j.Memory = DefaultMemory
	}

	body, err := json.Marshal(q)
	if err != nil {
		return r, fmt.Errorf("cannot encode a request: %w", err)
	}
	if len(body) > maxRequest {
		return r, &ProgramError{
			Size,
			fmt.Sprintf(
				"the program and its values have %d bytes, more than %d", len(body), maxRequest,
			),
		}
	}

	proc, err := jail.Start(ctx, jail.Config{
		Worker:   workerName,
		Profile:  jail.Compute,
		MinClass: jail.Nested,
		Env:      []string{"GOTRACEBACK=none"},
		Limits: jail.Limits{
			Memory:     j.Memory + overhead,
			Processes:  64,
			OpenFiles:  32,
			FileSize:   1,
			TmpBytes:   1 << 16,
			TmpInodes:  16,
			CPUSeconds: int64((readyIn+j.Wall)/time.Second) + 1,
		},
	})
	if err != nil {
		return r, failure(ctx, &BrokenError{err})
	}
	answer, err := j.exchange(ctx, proc, body)
	if err != nil {
		err = j.ended(ctx, proc, err)
	}
	if killed := proc.Kill(); killed != nil {
		return r, errors.Join(err, &BrokenError{killed})
	}
	if err != nil {
		return r, err
	}

	return parseReply(answer)
}

// exchange sends the request when the worker is ready, and reads the reply.
func (j Jail) exchange(ctx context.Context, proc *jail.Process, body []byte) ([]byte, error) {
	conn := proc.Conn()
	// A socket has deadlines.
	stop := context.AfterFunc(
		ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) },
	)
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(readyIn)); err != nil {
		return nil, err
	}

	in := frame.NewReader(conn, maxReply)
	if kind, _, err := in.Next(); err != nil || kind != kindReady {
		return nil, errors.Join(errReady, err)
	}
	if err := deadline(ctx, conn, j.Wall); err != nil {
		return nil, err
	}
	if err := frame.NewWriter(conn, maxRequest).Write(kindRequest, body); err != nil {
		return nil, err
	}

	kind, answer, err := in.Next()
	if err == nil && kind != kindReply {
		err = errReply
	}
	return answer, err
}

var (
	errReady = errors.New("the worker did not start")
	errReply = errors.New("cannot understand the worker's reply")
)

// deadline sets the connection's, unless the context has ended meanwhile.
func deadline(ctx context.Context, conn net.Conn, wall time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(wall)); err != nil {
		return err
	}
	return ctx.Err()
}

// ended says why there is no reply.
func (j Jail) ended(ctx context.Context, proc *jail.Process, err error) error {
	switch {
	case ctx.Err() != nil:
		return failure(ctx, err)
	case errors.Is(err, errReady):
		return &BrokenError{fmt.Errorf("%w (%s)", err, jail.LastLine(proc.Output()))}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &ProgramError{Time, fmt.Sprintf("it took longer than %v", j.Wall)}
	case errors.Is(err, frame.ErrTooLarge):
		return &ProgramError{Size, fmt.Sprintf("its result has more than %d bytes", maxReply)}
	case errors.Is(err, errReply):
		return &BrokenError{err}
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !isReset(err):
		return &BrokenError{err}
	}

	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), endIn)
	defer cancel()
	exit, waited := proc.Wait(wait)
	if waited != nil {
		return &BrokenError{errors.Join(err, waited)}
	}

	death := jail.FindDeath(proc.Output())
	switch {
	case exit.OOM || proc.OOM() || death.Cause == jail.OutOfMemory:
		return &ProgramError{Memory, fmt.Sprintf("it needed more than %d MiB", j.Memory>>20)}
	case exit.Signal == jail.CPUTimeSignal:
		return &ProgramError{Time, fmt.Sprintf("it took longer than %v", j.Wall)}
	case death.Line == "":
		return &ProgramError{Died, exit.String()}
	}

	return &ProgramError{Died, death.Message()}
}

// isReset reports whether the other end went away in the middle.
func isReset(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed)
}

// failure is the context's end, if that is why something failed.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// parseReply decodes what a worker sent.
func parseReply(body []byte) (r reply, err error) {
	if err := frame.DecodeJSON(body, &r); err != nil {
		return reply{}, &BrokenError{err}
	}
	if r.Kind == "" {
		return r, nil
	}
	if !r.Kind.known() {
		return reply{}, &BrokenError{errReply}
	}

	return reply{}, &ProgramError{r.Kind, r.Message}
}
