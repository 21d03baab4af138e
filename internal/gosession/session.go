// Package gosession is a Go session whose snippets are compiled: the half that does
// not depend on what wall stands around compiler and program.
//
// Its snippets are one program, which is compiled anew with each of them and runs
// the earlier ones again, silently and with the answers that the host gave before:
// see packages gobuild and gorun. A tier gives it a [Machine].
package gosession

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/gobuild"
	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/internal/gopipes"
	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
)

// Machine compiles the programs of one session and runs them, behind walls. It has
// one owner.
type Machine interface {
	// Build compiles a session. What is wrong with a snippet, or takes the compiler
	// too much, is a [*gobuild.CompileError].
	Build(ctx context.Context, request gobuild.Request) (gobuild.Built, error)
	// Start starts a program that Build has made. The context bounds the start
	// alone.
	Start(ctx context.Context, program []byte) (Program, error)
	// Close ends what it has started, and waits until programs that were closed have
	// ended. It is idempotent.
	Close() error
}

// Program is a compiled session that runs. Send may be called by many goroutines,
// the rest by one.
type Program interface {
	gohost.Process
	// Send sends one frame of package gorun. It does not wait for ever for a program
	// that does not read.
	Send(kind byte, body []byte) error
	// Frames is what the program sends, closed when it is gone.
	Frames() <-chan Frame
	// Broke reports, once Frames is closed, that it sent what is no frame.
	Broke() bool
	// Attach makes what is written go to sink, as [gopipes.Pipes.Attach] does. A
	// program whose outputs are frames has nothing to do.
	Attach(sink gopipes.Sink)
	// Died waits for a program whose frames have ended, and says how it did.
	Died() jail.Exit
	// OOM reports that the kernel has ended something of it for its memory.
	OOM() bool
	// Fault is why it ended, if that was no doing of the snippets'; nil otherwise.
	Fault() error
	// End kills it and waits. It is idempotent.
	End()
	// Close ends it and lets go of it. It may leave the waiting to the machine's Close.
	Close()
}

// Frame is one message of a program: a frame of package gorun, or if Stream is not 0
// a part of standard output (1) or standard error (2).
type Frame struct {
	Kind   byte
	Stream int
	Body   []byte
}

// Options are what sessions differ in.
type Options struct {
	// Tier is the tier's name.
	Tier   string
	Config tiers.Config
	// Mechanisms say by what each limit is kept.
	Mechanisms map[tiers.Limit]string
	// Open makes the machine, when the first snippet comes. A [*tiers.RejectedError]
	// says that there is none here.
	Open func(ctx context.Context) (Machine, error)
}

// Session is the Go half of a sandbox. It has one owner.
//
// The methods that ask for it are told the ordinal of the last Python snippet of the
// same sandbox: both languages count snippets together.
type Session struct {
	options  Options
	host     *gohost.Session
	enforced []tiers.Enforcement
	machine  Machine  // nil until the first snippet
	setup    []byte   // a gorun.Setup
	inputs   []string // their kinds, for the compiler
	history  []past
	snippet  int // ordinal of the snippet that runs or ran last
	runs     int // counts the snippets that were run here
	python   int // ordinal of the last Python snippet before it
}

// New returns a session. It starts nothing yet.
func New(o Options) *Session {
	host := gohost.NewSession(o.Config)
	host.Canonical = canonical
	s := &Session{options: o, host: host}
	l := host.Config.Limits
	for _, limit := range []struct {
		name  tiers.Limit
		value string
	}{
		{tiers.LimitWall, l.Wall.String()},
		{tiers.LimitActive, l.Active.String()},
		{tiers.LimitMemory, fmt.Sprintf("%d bytes", l.Memory)},
		{tiers.LimitOutput, fmt.Sprintf("%d bytes", l.Output)},
		{tiers.LimitHostCalls, fmt.Sprint(l.HostCalls)},
	} {
		s.enforced = append(s.enforced, tiers.Enforcement{Limit: limit.name, Value: limit.value, Mechanism: o.Mechanisms[limit.name]})
	}
	return s
}

// Limits are the session's, with their defaults.
func (s *Session) Limits() tiers.Limits { return s.host.Config.Limits }

// Run runs a snippet. See [tiers.Sandbox].
func (s *Session) Run(ctx context.Context, job tiers.Job, python int) (tiers.Result, error) {
	if err := ctx.Err(); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	s.python = python
	s.runs++
	return s.run(ctx, job, s.python+s.runs)
}

// Last reports whether the sandbox's last snippet was in Go.
func (s *Session) Last(python int) bool { return s.runs > 0 && s.python == python }

// past is a snippet whose effects are in the session.
type past struct {
	gobuild.Snippet
	ordinal int
	journal []gohost.Answered
	ran     bool // here: what it did is known
	did     [sha256.Size]byte
	changed bool // it did something else when it ran again
	took    time.Duration
}

// prepare opens the machine and describes the session to its programs.
func (s *Session) prepare(ctx context.Context) error {
	if s.machine != nil {
		return nil
	}
	machine, err := s.options.Open(ctx)
	if err != nil {
		return err
	}
	if err := s.describe(ctx); err != nil {
		return errors.Join(err, machine.Close())
	}
	s.machine = machine
	return nil
}

func (s *Session) describe(ctx context.Context) error {
	setup := gorun.Setup{Memory: s.Limits().Memory, Seed: rand.Int64()} //nolint:gosec // for the guest's convenience
	s.inputs = nil
	for i, in := range s.host.Config.Inputs {
		input, err := gohost.Input(ctx, in)
		if err != nil {
			return fmt.Errorf("cannot use input %d (%s): %w", i, in.Name, err)
		}
		s.inputs, setup.Inputs = append(s.inputs, input.Kind), append(setup.Inputs, input)
	}
	var err error
	s.setup, err = json.Marshal(setup)
	return err
}

// run runs a snippet with an ordinal.
func (s *Session) run(ctx context.Context, job tiers.Job, ordinal int) (tiers.Result, error) {
	if err := s.prepare(ctx); err != nil {
		var rejected *tiers.RejectedError
		if errors.As(err, &rejected) {
			return tiers.Result{}, err
		}
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	if err := s.host.Changed(); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	s.snippet = ordinal
	program, refs, err := s.build(ctx, job.Source)
	var failure *gobuild.CompileError
	if errors.As(err, &failure) {
		return tiers.Result{
			Status: tiers.StatusRaised, Enforced: s.enforced,
			Exception: gohost.Mistake(failure.Type, failure.Message, failure.Text),
		}, nil
	}
	if err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	defer program.Close()
	lost, err := s.replay(ctx, program)
	if err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, lost, err)
	}
	t := s.turn(program, len(s.history)+1)
	t.out.Sinks = [2]io.Writer{job.Stdout, job.Stderr}
	return s.ended(ctx, t, t.play(ctx, nil), past{
		Snippet: gobuild.Snippet{Source: job.Source, Refs: refs[len(s.history)]}, ordinal: ordinal,
	}, lost)
}

func (s *Session) broken(effects tiers.Effects, lost *tiers.Loss, err error) error {
	return &tiers.BrokenError{Tier: s.options.Tier, Effects: effects, Lost: lost, Err: err}
}

// build compiles the session and further snippets, and starts the program.
func (s *Session) build(ctx context.Context, sources ...string) (Program, [][]gobuild.Ref, error) {
	request := gobuild.Request{Inputs: s.inputs}
	for _, f := range s.host.Config.Functions {
		request.Functions = append(request.Functions, f.Name)
	}
	for _, p := range s.history {
		request.Snippets = append(request.Snippets, p.Snippet)
	}
	for _, source := range sources {
		request.Snippets = append(request.Snippets, gobuild.Snippet{Source: source})
	}
	built, err := s.machine.Build(ctx, request)
	if err != nil {
		return nil, nil, err
	}
	program, err := s.machine.Start(ctx, built.Program)
	if err != nil {
		return nil, nil, err
	}
	if err := program.Send(gorun.KindSetup, s.setup); err != nil {
		program.Close()
		return nil, nil, fmt.Errorf("cannot set up a program: %w", err)
	}
	return program, built.Refs, nil
}

// replay runs the session's snippets again. What did something else than before
// is a loss; the session goes on with what is so now. If the program ends, the
// session is at an end, too, and begins anew.
func (s *Session) replay(ctx context.Context, program Program) (*tiers.Loss, error) {
	var lost *tiers.Loss
	for i := range s.history {
		p := &s.history[i]
		t := s.turn(program, i+1)
		t.limits.Wall, t.limits.Active = 3*p.took+replaySlack, 3*p.took+replaySlack
		e := t.play(ctx, append([]gohost.Answered{}, p.journal...))
		if e.end == nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx) // the session is as it was
			}
			if fault := program.Fault(); fault != nil {
				return nil, fault // as above
			}
			lost = &tiers.Loss{Reason: fmt.Sprintf("Snippet %d did not end when it ran again, and the session begins anew.", p.ordinal)}
			for _, p := range s.history {
				lost.Snippets = append(lost.Snippets, p.ordinal)
			}
			s.history = nil
			return lost, fmt.Errorf("cannot run snippet %d again", p.ordinal)
		}
		if !p.ran {
			p.did, p.ran, p.took = t.did(e), true, t.meter.Own()
		}
		if !t.calls.Strayed() && t.did(e) == p.did {
			continue
		}
		p.changed = true
		if lost == nil {
			lost = &tiers.Loss{Reason: "The session's Go program runs again for each snippet, and these gave something else than the first time: their variables may have other values now."}
		}
		lost.Snippets = append(lost.Snippets, p.ordinal)
	}
	return lost, nil
}

// replaySlack is how much longer than before, besides three times, a snippet may
// take that runs again.
const replaySlack = 10 * time.Second

// ended makes the result of a turn.
func (s *Session) ended(ctx context.Context, t *turn, e ending, p past, lost *tiers.Loss) (tiers.Result, error) {
	r := t.result(e)
	r.Enforced, r.Lost = s.enforced, lost
	if r.Exception != nil {
		r.Exception.Traceback = s.quoted(r.Exception.Traceback, p)
	}
	if e.end != nil {
		p.journal, p.ran, p.did, p.took = t.calls.Journal(), true, t.did(e), t.meter.Own()
		s.history = append(s.history, p)
		return r, nil
	}
	if r.Lost == nil {
		r.Lost = &tiers.Loss{Reason: "The program had to be stopped; the session was restored to the state before this snippet."}
	}
	r.Lost.Snippets = append(r.Lost.Snippets, s.snippet)
	if ctx.Err() != nil && errors.Is(e.err, context.Cause(ctx)) {
		return r, s.broken(tiers.EffectsRan, r.Lost, e.err)
	}
	if fault := t.program.Fault(); fault != nil {
		return r, s.broken(tiers.EffectsRan, r.Lost, fault)
	}
	return r, nil
}

// place is a line of a snippet in a traceback.
var place = regexp.MustCompile(`(?m)^\tsnippet_([0-9]{1,6}):?\.go:([0-9]{1,7})$`)

// quoted adds to a traceback the lines of the snippets that it names.
func (s *Session) quoted(traceback string, running past) string {
	return place.ReplaceAllStringFunc(traceback, func(found string) string {
		m := place.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[1]) // the pattern has found digits
		line, _ := strconv.Atoi(m[2])
		source := running.Source
		if n <= len(s.history) && n > 0 {
			source = s.history[n-1].Source
		}
		if text := lineOf(source, line); text != "" {
			return found + ": " + text
		}
		return found
	})
}

// lineOf is one line of a text, from 1, without the blanks around it.
func lineOf(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[line-1])
}

// Close ends what the session has started. It is idempotent.
func (s *Session) Close() error {
	if s.machine == nil {
		return nil
	}
	return s.machine.Close()
}
