package local

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"time"

	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local/gobuild"
)

// goSession is the Go half of a sandbox. Its snippets are one program, which is
// compiled anew with each of them and runs the earlier ones again, silently and
// with the answers that the host gave before.
type goSession struct {
	tier     *Tier
	host     *gohost.Session
	enforced []tiers.Enforcement
	builder  *builder // nil until the first snippet
	setup    []byte   // a gorun.Setup
	inputs   []string // their kinds, for the builder
	history  []goPast
	snippet  int // ordinal of the snippet that runs or ran last
	runs     int // counts the snippets that were run here
	python   int // ordinal of the last Python snippet before it
}

// goPast is a snippet whose effects are in the session.
type goPast struct {
	gobuild.Snippet
	ordinal int
	journal []gohost.Answered
	ran     bool // here: what it did is known
	did     [sha256.Size]byte
	changed bool // it did something else when it ran again
	took    time.Duration
}

func newGoSession(t *Tier, cfg tiers.Config) *goSession {
	host := gohost.NewSession(cfg)
	host.Canonical = canonical
	return &goSession{tier: t, host: host, enforced: goEnforcement(host.Config.Limits)}
}

func goEnforcement(l tiers.Limits) []tiers.Enforcement {
	return []tiers.Enforcement{
		{Limit: tiers.LimitWall, Value: l.Wall.String(), Mechanism: "the host's clock, every 20 ms; SIGKILL"},
		{Limit: tiers.LimitActive, Value: l.Active.String(), Mechanism: "the jail's processor time, or the host's clock, every 20 ms; SIGKILL"},
		{Limit: tiers.LimitMemory, Value: fmt.Sprintf("%d bytes", l.Memory), Mechanism: "GOMEMLIMIT; the jail's limit, with 64 MiB for the program itself"},
		{Limit: tiers.LimitOutput, Value: fmt.Sprintf("%d bytes", l.Output), Mechanism: "the host counts and drops the rest"},
		{Limit: tiers.LimitHostCalls, Value: fmt.Sprint(l.HostCalls), Mechanism: "the host counts and refuses"},
	}
}

// runGo runs a Go snippet. Both languages count snippets together.
func (s *sandbox) runGo(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	if err := ctx.Err(); err != nil {
		return tiers.Result{}, s.Broken(tiers.EffectsNeverRan, nil, err)
	}
	g := s.golang
	g.python = s.Session.Snippet()
	g.runs++
	return g.run(ctx, job, g.python+g.runs)
}

// wasGo reports whether the last snippet was in Go.
func (s *sandbox) wasGo() bool {
	return s.golang.runs > 0 && s.golang.python == s.Session.Snippet()
}

// exportGo returns the Go half of a session.
func (s *sandbox) exportGo() (tiers.State, error) {
	state, err := s.golang.export()
	if s.Session.Snippet() > 0 {
		state.Left = append(state.Left, tiers.Left{Name: "*", Type: string(tiers.Python), Reason: "the session's Python variables are of another language"})
	}
	return state, err
}

// importGo goes on with a Go session of another tier.
func (s *sandbox) importGo(ctx context.Context, state tiers.State) (tiers.Report, error) {
	if s.Session.Snippet() > 0 || s.golang.runs > 0 {
		return tiers.Report{}, fmt.Errorf("cannot import a state after %d snippets", s.Session.Snippet()+s.golang.runs)
	}
	report, err := s.golang.load(ctx, state)
	if err == nil {
		s.golang.runs = max(1, state.Snippet)
	}
	return report, err
}

// prepare finds the toolchain and describes the session to its programs.
func (s *goSession) prepare(ctx context.Context) error {
	if s.builder != nil {
		return nil
	}
	tools, err := s.tier.golang(ctx)
	if err != nil {
		return &tiers.RejectedError{Tier: Name, Missing: string(tiers.Go), Effects: tiers.EffectsNeverRan, Reason: err.Error()}
	}
	setup := gorun.Setup{Memory: s.host.Config.Limits.Memory, Seed: rand.Int64()} //nolint:gosec // for the guest's convenience
	s.inputs = nil
	for i, in := range s.host.Config.Inputs {
		input, err := gohost.Input(ctx, in)
		if err != nil {
			return fmt.Errorf("cannot use input %d (%s): %w", i, in.Name, err)
		}
		s.inputs, setup.Inputs = append(s.inputs, input.Kind), append(setup.Inputs, input)
	}
	if s.setup, err = json.Marshal(setup); err != nil {
		return err
	}
	s.builder = &builder{tools: tools, class: s.tier.options.MinClass, within: s.tier.buildIn}
	return nil
}

// Run runs a snippet with the ordinal that the sandbox gives it.
func (s *goSession) run(ctx context.Context, job tiers.Job, ordinal int) (tiers.Result, error) {
	if err := s.prepare(ctx); err != nil {
		var rejected *tiers.RejectedError
		if errors.As(err, &rejected) {
			return tiers.Result{}, err
		}
		return tiers.Result{}, goBroken(tiers.EffectsNeverRan, nil, err)
	}
	if err := s.host.Changed(); err != nil {
		return tiers.Result{}, goBroken(tiers.EffectsNeverRan, nil, err)
	}
	s.snippet = ordinal
	program, err := s.build(ctx, job.Source)
	var failure *gobuild.CompileError
	if errors.As(err, &failure) {
		return tiers.Result{
			Status: tiers.StatusRaised, Enforced: s.enforced,
			Exception: gohost.Mistake(failure.Type, failure.Message, failure.Text),
		}, nil
	}
	if err != nil {
		return tiers.Result{}, goBroken(tiers.EffectsNeverRan, nil, err)
	}
	defer program.close()
	lost, err := s.replay(ctx, program)
	if err != nil {
		return tiers.Result{}, goBroken(tiers.EffectsNeverRan, lost, err)
	}
	t := s.turn(program, len(s.history)+1)
	t.out.Sinks = [2]io.Writer{job.Stdout, job.Stderr}
	return s.ended(ctx, t, t.play(ctx, nil), goPast{
		Snippet: gobuild.Snippet{Source: job.Source, Refs: program.refs[len(s.history)]}, ordinal: ordinal,
	}, lost)
}

func goBroken(effects tiers.Effects, lost *tiers.Loss, err error) error {
	return &tiers.BrokenError{Tier: Name, Effects: effects, Lost: lost, Err: err}
}

// build compiles the session and further snippets, and starts the program.
func (s *goSession) build(ctx context.Context, sources ...string) (*goProgram, error) {
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
	built, err := s.builder.build(ctx, request)
	if err != nil {
		return nil, err
	}
	if len(built.refs) != len(request.Snippets) {
		return nil, gohost.ErrProtocol
	}
	return s.start(ctx, built)
}

// replay runs the session's snippets again. What did something else than before
// is a loss; the session goes on with what is so now. If the program ends, the
// session is at an end, too, and begins anew.
func (s *goSession) replay(ctx context.Context, program *goProgram) (*tiers.Loss, error) {
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
func (s *goSession) ended(ctx context.Context, t *goTurn, e goEnding, p goPast, lost *tiers.Loss) (tiers.Result, error) {
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
		return r, goBroken(tiers.EffectsRan, r.Lost, e.err)
	}
	return r, nil
}

// place is a line of a snippet in a traceback.
var place = regexp.MustCompile(`(?m)^\tsnippet_([0-9]{1,6}):?\.go:([0-9]{1,7})$`)

// quoted adds to a traceback the lines of the snippets that it names.
func (s *goSession) quoted(traceback string, running goPast) string {
	return place.ReplaceAllStringFunc(traceback, func(found string) string {
		m := place.FindStringSubmatch(found)
		n, line := atoi(m[1]), atoi(m[2])
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

// close ends what the session has started.
func (s *goSession) close() error {
	if s.builder == nil {
		return nil
	}
	return s.builder.close()
}
