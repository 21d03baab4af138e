package worker

import (
	"errors"
	"fmt"

	"github.com/go-python/gpython/py"

	_ "github.com/go-python/gpython/compile" // gives package py its compiler
	_ "github.com/go-python/gpython/stdlib/builtin"

	"github.com/rlmhq/rlm/internal/golang/guest/run"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// pySession is the Python part of one session. Its snippets are pure: they only print and set
// variables. So a snippet that fails in the interpreter at run time can be undone: the session
// drops its output and reruns the earlier snippets in a new interpreter.
type pySession struct {
	link  *link
	in    *pyInterp
	vars  map[string]*pyType
	fixed map[string]bool // names that the session provides and that snippets cannot bind
	past  []pyProgram
	early error
}

// pyProgram is an accepted snippet.
type pyProgram struct {
	body, tail *py.Code // the program without its last expression; that expression
}

func newPySession(l *link) *pySession {
	s := &pySession{link: l, vars: map[string]*pyType{}, fixed: map[string]bool{}}
	s.in, s.early = newPyInterp()
	s.setup(run.Setup{})
	return s
}

// setup fixes the names that the session provides. In a CPython tier, a snippet that binds such a
// name has its own value until it ends, and the next snippet finds the session's value again.
func (s *pySession) setup(setup run.Setup) {
	for _, name := range append(protocol.Fixed(), setup.Functions...) {
		s.fixed[name] = !protocol.IsCommon(name)
	}
	for i := range setup.Inputs {
		s.fixed["context"], s.fixed[fmt.Sprint("context_", i)] = true, true
	}
}

// run runs one snippet.
func (s *pySession) run(source string) ending {
	if s.early != nil {
		return rejected("python", "the interpreter could not be prepared: "+s.early.Error())
	}
	program, vars, reason := s.prepare(source)
	if reason != "" {
		return rejected("python", reason)
	}

	if err := s.in.run(program); err != nil {
		end := rejected("python", "at run time: "+err.Error())
		end.report.IsDirty = s.again() != nil
		return end
	}
	s.vars, s.past = vars, append(s.past, program)
	s.link.out.write('1', s.in.out)
	if s.in.echo != "" {
		s.link.out.echo(s.in.echo)
	}

	if s.in.final != nil {
		// If the host is gone, listen ends the worker.
		_ = s.link.host.FinalJSON(s.in.final, "")
	}
	return ending{code: wire.CodeOK}
}

// again rebuilds the namespace in a new interpreter.
func (s *pySession) again() error {
	in, err := newPyInterp()
	if err != nil {
		return err
	}
	for _, program := range s.past {
		if err := in.run(program); err != nil {
			return err
		}
	}

	s.in = in
	return nil
}

// prepare checks and compiles a snippet.
func (s *pySession) prepare(
	source string,
) (program pyProgram, vars map[string]*pyType, reason string) {
	defer func() {
		if r := recover(); r != nil {
			reason = "the interpreter failed"
		}
	}()
	body, tail, vars, reason := checkPython(source, s.vars, s.fixed)
	if reason != "" {
		return program, nil, reason
	}

	var err error
	if body != "" {
		program.body, err = py.Compile(body, "<snippet>", py.ExecMode, 0, true)
	}
	if tail != "" && err == nil {
		program.tail, err = py.Compile(tail+"\n", "<snippet>", py.EvalMode, 0, true)
	}
	if err != nil {
		return program, nil, "the snippet's syntax is not in the supported part of Python"
	}

	return program, vars, ""
}

// pyInterp is one gpython interpreter.
type pyInterp struct {
	ctx    *pyContext
	module *py.Module
	out    []byte
	echo   string // the value of the last expression
	final  []byte
}

func newPyInterp() (*pyInterp, error) {
	in := &pyInterp{}
	ctx, err := newPyContext(in)
	if err != nil {
		return nil, err
	}
	in.ctx = ctx
	in.module, err = ctx.store.NewModule(
		ctx, &py.ModuleImpl{Info: py.ModuleInfo{Name: py.MainModuleName}, Globals: py.StringDict{}},
	)

	return in, err
}

// run runs a program and collects its output.
func (in *pyInterp) run(program pyProgram) (err error) {
	in.out, in.echo, in.final = in.out[:0], "", nil
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the interpreter failed: %v", r)
		}
	}()

	if program.body != nil {
		_, err := in.ctx.RunCode(program.body, in.module.Globals, in.module.Globals, nil)
		switch {
		case in.final != nil:
			return nil
		case err != nil:
			return plain(err)
		}
	}

	if program.tail == nil {
		return nil
	}
	value, err := in.ctx.RunCode(program.tail, in.module.Globals, in.module.Globals, nil)
	switch {
	case in.final != nil:
		return nil
	case err != nil:
		return plain(err)
	case value == py.None:
		return nil
	}

	text, err := pyRepr(value)
	if err == nil && len(in.out)+len(text) > mostPrinted {
		err = errPrints
	}
	in.echo = text
	return err
}

// plain converts an exception to a short error.
func plain(err error) error {
	var e py.ExceptionInfo
	if errors.As(err, &e) && e.Type != nil {
		return fmt.Errorf("the snippet raises %s", e.Type.Name)
	}
	return errors.New("the snippet raises an exception")
}

// mostPrinted bounds the output of a snippet, in bytes. The worker buffers the output until the
// snippet ends, so that it can drop the output.
const mostPrinted = 4 << 20

var errPrints = fmt.Errorf("the snippet prints more than %d bytes", mostPrinted)

func (in *pyInterp) write(text string) error {
	if len(in.out)+len(text) > mostPrinted {
		return errPrints
	}
	in.out = append(in.out, text...)
	return nil
}
