// Package evaluators runs templates and programs in Lua and Prolog. Their interpreters cannot be
// bounded from within, so each request runs in a separate jail.
//
// A [Jail] starts a jailed process of this binary for each request. The process receives one
// request, sends one reply and ends. It has no files, no network and no other processes. The host
// bounds its time, its memory and the size of its reply. A template that repeatedly doubles a
// string, a Lua pattern that backtracks forever, or a Prolog program that calls halt/0 can only end
// its own process.
//
// A process that runs a program is hostile, so the host bounds its reply and decodes it strictly.
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

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/wall/jail"
)

// Defaults and bounds of a Jail.
const (
	DefaultWall   = 10 * time.Second
	DefaultMemory = 128 << 20

	maxRequest = 32 << 20 // bytes of JSON
	maxReply   = 8 << 20
	overhead   = 64 << 20         // the memory of the process before its program starts
	readyIn    = 30 * time.Second // the longest startup
	endIn      = 10 * time.Second // the longest shutdown
)

// Jail bounds programs. The zero value uses the defaults.
type Jail struct {
	// Wall bounds the time of one request; Memory bounds its memory, in bytes.
	Wall   time.Duration
	Memory int64
}

// Kind is the way in which a program failed.
type Kind string

// The ways in which programs fail.
const (
	Syntax Kind = "a syntax error"
	Raised Kind = "an error"
	Time   Kind = "the limit of time"
	Memory Kind = "the limit of memory"
	Size   Kind = "the limit of size"
	Died   Kind = "the end of its interpreter"
)

// known reports whether a worker is allowed to report the kind.
func (k Kind) known() bool { return k == Syntax || k == Raised || k == Size }

// ProgramError reports a failed program. Except for limits, the program itself writes Message.
type ProgramError struct {
	Kind    Kind
	Message string
}

// Error describes how the program failed.
func (e *ProgramError) Error() string { return string(e.Kind) + ": " + e.Message }

// BrokenError reports that a jail could not start or that it broke.
type BrokenError struct{ Err error }

// Error describes the failure.
func (e *BrokenError) Error() string { return "cannot run the program in a jail: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// Mistake is an error in a template.
type Mistake struct {
	// Index is the position in the list of templates, from 0. Line is the line in the template,
	// from 1.
	Index   int    `json:"index"`
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// IsTemplate reports whether text contains template syntax.
func IsTemplate(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "{%") ||
		strings.Contains(text, "{#")
}

// HasTemplate reports whether a value of encoding/json contains a string with a template. It
// ignores the keys of objects.
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

// Render renders the templates in a value with the given variables. A string that consists of one
// expression becomes the expression's value.
func (j Jail) Render(ctx context.Context, value any, variables map[string]any) (any, error) {
	return j.value(ctx, request{Task: taskRender, Value: value, Variables: variables})
}

// CheckTemplates returns the mistakes in templates, at most one per template.
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

// Lua runs a Lua program. Each variable is a global. The result is the returned value, or else
// the global result. The program can use the base library, math, string and table, except the
// functions that load code.
func (j Jail) Lua(ctx context.Context, source string, variables map[string]any) (any, error) {
	return j.value(ctx, request{Task: taskLua, Source: source, Variables: variables})
}

// Prolog runs a Prolog program. The variable output is output(X), and the members of the variable
// state are state(Key, X). Strings are atoms. Objects are json([Key=Value, ...]), and get/3 reads
// their members. Clauses form the program. A directive, a query, a conjunction, a disjunction or a
// call of return/2 is a goal. Goals run in order, each for its first solution. The result is an
// object with the arguments of all return(Key, Value).
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

// run starts a jail and exchanges one request for a reply.
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
		err = j.explainEnd(ctx, proc, err)
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
	// A jail's connection is a socket, which has deadlines.
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
	errReply = errors.New("the worker's reply is invalid")
)

// deadline sets the connection's deadline, unless the context has ended in the meantime.
func deadline(ctx context.Context, conn net.Conn, wall time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(wall)); err != nil {
		return err
	}
	return ctx.Err()
}

// explainEnd returns the reason why the worker sent no reply.
func (j Jail) explainEnd(ctx context.Context, proc *jail.Process, err error) error {
	switch {
	case ctx.Err() != nil:
		return failure(ctx, err)
	case errors.Is(err, errReady):
		return &BrokenError{fmt.Errorf("%w (%s)", err, jail.LastLine(proc.Output()))}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &ProgramError{Time, fmt.Sprintf("the program took longer than %v", j.Wall)}
	case errors.Is(err, frame.ErrTooLarge):
		return &ProgramError{Size, fmt.Sprintf("the result has more than %d bytes", maxReply)}
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
		return &ProgramError{Memory, fmt.Sprintf("the program needed more than %d MiB", j.Memory>>20)}
	case exit.Signal == jail.CPUTimeSignal:
		return &ProgramError{Time, fmt.Sprintf("the program took longer than %v", j.Wall)}
	case death.Line == "":
		return &ProgramError{Died, exit.String()}
	}

	return &ProgramError{Died, death.Message()}
}

// isReset reports whether the other end closed the connection early.
func isReset(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed)
}

// failure returns the context's error if the context has ended, otherwise err.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// parseReply decodes a worker's reply.
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
