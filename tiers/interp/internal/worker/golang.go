package worker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/traefik/yaegi/interp"

	"github.com/rlmhq/rlm/internal/golang/guest/run"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/tiers/interp/internal/gosymbols"
)

// goSession is one session's Go interpreter. It runs one snippet at a time. Goroutines of
// earlier snippets may still run.
type goSession struct {
	link   *link
	yaegi  *interp.Interpreter
	broken error
	known  *goNames
	errs   *panicFilter
}

// noFiles is the file system of imports such as "./x". It is empty.
type noFiles struct{}

// Open returns an error.
func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func newGoSession(l *link) *goSession {
	s := &goSession{link: l, known: newGoNames(), errs: &panicFilter{to: stream{l.out, '2'}}}
	s.yaegi = interp.New(interp.Options{
		Stdin: strings.NewReader(""), Stdout: stream{l.out, '1'}, Stderr: s.errs,
		SourcecodeFilesystem: noFiles{}, Args: []string{}, Env: []string{},
	})
	s.broken = s.yaegi.Use(gosymbols.Exports())
	return s
}

// setup declares the host's functions and the session's inputs.
func (s *goSession) setup(setup run.Setup) {
	symbols, names, err := s.hostSymbols(setup)
	s.broken = errors.Join(s.broken, err, s.yaegi.Use(interp.Exports{"rlm/rlm": symbols}))
	if s.broken == nil {
		_, s.broken = s.yaegi.Eval(`import . "rlm"`)
	}
	for _, name := range names {
		s.known.host[name] = true
	}
}

// run runs one snippet.
func (s *goSession) run(source string, number int) ending {
	if s.broken != nil {
		return rejected("go", "the interpreter could not be prepared: "+s.broken.Error())
	}
	plan, end := planGo(source, s.known, number)
	if plan == nil {
		return end
	}

	programs := make([]*interp.Program, len(plan.chunks))
	for i, c := range plan.chunks {
		var err error
		if programs[i], err = s.compile(c); err != nil {
			end := uncompiled(locate(err.Error(), number, c.line), err.Error())
			end.report.IsDirty = true
			return end
		}
	}

	end = ending{code: wire.CodeOK, report: Report{Impure: plan.impure}}
	for i, c := range plan.chunks {
		value, err := s.execute(programs[i])
		if err != nil {
			end.code = wire.CodeRaised
			end.exception = s.explainPanic(plan, c, err)
			break
		}

		if c.echo {
			echo(s.link.out, value)
		}
	}

	s.known.add(plan)
	return end
}

// uncompiled returns the ending of a snippet that does not compile: its exception if no other tier
// might run it, otherwise a rejection.
func uncompiled(message, reason string) ending {
	e := run.ExplainMistake(run.CompileError, message, message+"\n")
	end := rejected("go", "the Go interpreter cannot compile it: "+reason)
	end.exception, end.report.IsInvalid = &e, true
	return end
}

// compile compiles a chunk. The interpreter panics on some code that it does not support.
func (s *goSession) compile(c goChunk) (program *interp.Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the interpreter failed: %v", r)
		}
	}()
	return s.yaegi.Compile(c.source())
}

func (s *goSession) execute(program *interp.Program) (value reflect.Value, err error) {
	defer func() {
		if r := recover(); r != nil { // during the conversion of the result
			err = interp.Panic{Value: r}
		}
	}()
	s.errs.take()
	return s.yaegi.Execute(program)
}

// locate puts the snippet's name before an error of the interpreter, and adds the line if the error
// does not begin with a line and column.
func locate(message string, number, line int) string {
	if !position.MatchString(message) {
		message = fmt.Sprintf("%d: %s", line, message)
	}
	return fileOf(number) + ":" + message
}

var position = lazyregexp.New(`^\d+:\d+: `)

// explainPanic describes a panic. The interpreter reports where the panicking function begins, but
// not the line of the panic. The statement of the snippet is exact.
func (s *goSession) explainPanic(plan *goPlan, c goChunk, err error) *run.Exception {
	kind, message := "panic", err.Error()
	var p interp.Panic
	if errors.As(err, &p) {
		if e, ok := p.Value.(error); ok {
			message = e.Error()
			if strings.HasPrefix(message, "runtime error: ") ||
				strings.HasPrefix(message, "reflect: ") {
				kind = "runtime.Error"
			}
		} else {
			message = fmt.Sprint(p.Value)
		}
	}

	var b strings.Builder
	fmt.Fprintf(&b, "panic: %s\n\n", message)
	for _, f := range s.errs.take() {
		fmt.Fprintf(&b, "%s(...)\n\t%s:%s\n", f.name, fileOf(s.findSnippet(f.name, plan)), f.line)
	}
	fmt.Fprintf(&b, "main.main(...)\n\t%s:%d: %s\n", fileOf(plan.number), c.line, c.firstLine())

	return &run.Exception{Type: kind, Message: message, Traceback: b.String()}
}

// findSnippet returns the number of the snippet that declared the function of a frame.
func (s *goSession) findSnippet(frame string, running *goPlan) int {
	name := strings.TrimPrefix(frame, "main.")
	if running.own.results[name] == 0 && s.known.results[name] > 0 {
		return s.known.from[name]
	}
	return running.number
}

// echo writes the value of a trailing expression, with quoted strings.
func echo(out *output, value reflect.Value) {
	if !value.IsValid() || !value.CanInterface() {
		return
	}
	switch v := value.Interface().(type) {
	case string:
		out.echo(strconv.Quote(v))
	case func():
	default:
		if value.Kind() != reflect.Func {
			out.echo(fmt.Sprintf("%+v", v))
		}
	}
}

// panicFilter removes lines such as "5:3: panic: main.f(...)", with which the interpreter traces
// a panic, from stderr.
type panicFilter struct {
	to io.Writer

	mu     sync.Mutex // guards frames
	frames []goFrame
}

// goFrame is a function that a panic unwound, and the line on which the function begins.
type goFrame struct{ name, line string }

// Write forwards the snippet's output.
func (f *panicFilter) Write(text []byte) (int, error) {
	line := strings.TrimSpace(string(text))
	where, name, ok := strings.Cut(line, ": panic: ")
	if !ok || strings.Contains(line, "\n") || !strings.HasSuffix(name, "(...)") {
		return f.to.Write(text)
	}
	row, _, _ := strings.Cut(where, ":")
	name = strings.TrimSuffix(name, "(...)")
	if name == "main" || strings.Contains(name, wrapper) {
		return len(text), nil
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.frames) < 50 {
		f.frames = append(f.frames, goFrame{name, row})
	}
	return len(text), nil
}

func (f *panicFilter) take() []goFrame {
	f.mu.Lock()
	defer f.mu.Unlock()
	frames := f.frames
	f.frames = nil
	return frames
}
