package golang

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/golang/guest/build"
	"github.com/rlmhq/rlm/internal/golang/guest/run"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// Guest is the Go half of a session. It starts nothing until the first Go snippet.
type Guest struct {
	// Tier is the tier's name.
	Tier string
	// Accounts are the session's accounts.
	Accounts *session.Accounts
	// Open builds the wall. A [*tiers.RejectedError] explains why this machine has no wall.
	Open func(ctx context.Context) (Wall, error)

	wall     Wall // nil until the first snippet
	compiler *compiler
	kinds    []string // kinds of the inputs, for the compiler
	knows    int      // the configuration's version that kinds is from
	about    run.Session
	history  *session.History
	refs     [][]build.Ref // the references of each snippet in the history

	next    chan startedProgram // the program for the next snippet; nil if none is being started
	closing sync.WaitGroup      // programs being closed
	current *program            // the current snippet's program; nil if it does not compile
	failure *build.CompileError // why the current snippet does not compile
	newRefs []build.Ref         // the current snippet's references
}

// startedProgram is a started relay, or the error of its start.
type startedProgram struct {
	program *program
	err     error
}

var (
	_ session.Guest = (*Guest)(nil)
	_ session.Mover = (*Guest)(nil)
)

// open builds the wall and describes the session for its programs.
func (g *Guest) open(ctx context.Context) error {
	if g.wall != nil {
		return nil
	}

	wall, err := g.Open(ctx)
	if err != nil {
		return err
	}

	g.about = run.Session{ //nolint:gosec // for the guest's convenience
		Memory: g.Accounts.Limits().Memory, Seed: rand.Int64(),
	}

	g.history = session.NewHistory(g.Accounts)
	g.history.Canonical = stripSuffixes
	g.compiler = &compiler{wall: wall}
	g.wall = wall
	return nil
}

// findKinds returns the Go forms of the session's inputs.
func (g *Guest) findKinds(ctx context.Context) error {
	if g.knows == g.Accounts.Configuration() {
		return nil
	}

	inputs := g.Accounts.Config().Inputs
	kinds := make([]string, len(inputs))
	for i, in := range inputs {
		switch {
		case in.Value != nil:
			kinds[i] = run.InputIsValue
		case in.Text != nil:
			text, err := bigtext.Of(ctx, in.Text)
			if err != nil {
				return fmt.Errorf("cannot use input %d (%s): %w", i, in.Name, err)
			}
			invalid, err := text.Invalid(ctx)
			if err != nil {
				return fmt.Errorf("cannot use input %d (%s): %w", i, in.Name, err)
			}
			kinds[i] = run.KindOf(text.Size(), invalid)
		}
	}
	g.kinds, g.knows = kinds, g.Accounts.Configuration()
	return nil
}

// Prepare compiles the session with the snippet, starts the program and repeats the earlier
// snippets. If the snippet does not compile, Run reports the mistake.
func (g *Guest) Prepare(ctx context.Context, s session.Snippet, _ bool) (*tiers.Loss, error) {
	if err := g.open(ctx); err != nil {
		return nil, err
	}
	if err := g.Accounts.CheckInputs(); err != nil {
		return nil, err
	}
	if err := g.findKinds(ctx); err != nil {
		return nil, err
	}

	if g.current != nil { // the program was prepared for a snippet that never began
		g.discard()
	}
	g.failure = nil
	program, refs, err := g.build(ctx, s.Source)
	if errors.As(err, &g.failure) {
		return nil, nil //nolint:nilnil // Run reports it
	}
	if err != nil {
		return nil, err
	}

	g.current, g.newRefs = program, refs[len(refs)-1]
	lost, err := g.replay(ctx)
	if err != nil {
		g.discard()
	}
	return lost, err
}

// build compiles the session with additional snippets and starts the program.
func (g *Guest) build(ctx context.Context, sources ...string) (*program, [][]build.Ref, error) {
	g.startNext(ctx)
	request := &build.Request{Inputs: g.kinds}
	for _, f := range g.Accounts.Config().Functions {
		if f.Value == nil {
			request.Functions = append(request.Functions, f.Name)
		}
	}
	for i, p := range g.history.Past() {
		request.Snippets = append(
			request.Snippets, build.Snippet{Source: p.Source, Refs: g.refs[i]},
		)
	}
	for _, source := range sources {
		request.Snippets = append(request.Snippets, build.Snippet{Source: source})
	}

	built, err := g.compiler.compile(ctx, request)
	if err != nil {
		return nil, nil, err
	}
	program, err := g.start(ctx, built.Program)
	return program, built.Refs, err
}

// startTimeout bounds the start of a relay.
const startTimeout = 60 * time.Second

// startNext starts the relay of the next program in the background, unless a relay is already ready
// or starting. A start takes as long as a compilation.
func (g *Guest) startNext(ctx context.Context) {
	if g.next != nil {
		return
	}

	next := make(chan startedProgram, 1)
	g.next = next
	memory := g.Accounts.Limits().Memory
	// The relay may serve a later snippet, so the start outlives ctx.
	ctx, cancel := context.WithTimeout(
		context.WithoutCancel(ctx), startTimeout,
	)

	go func() {
		defer cancel()
		p, err := startProgram(ctx, g.wall, memory)
		next <- startedProgram{p, err}
	}()
}

// start runs a program in the relay that was started in advance, or in a new relay if that one
// failed.
func (g *Guest) start(ctx context.Context, file []byte) (*program, error) {
	var failed error
	for range 2 {
		g.startNext(ctx)
		select {
		case started := <-g.next:
			g.next = nil
			if failed = started.err; failed != nil {
				continue
			}
			if failed = started.program.begin(file); failed == nil {
				return started.program, nil
			}
			g.close(started.program)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, fmt.Errorf("cannot start a program: %w", failed)
}

// replay repeats the snippets of the history. If a snippet has different effects this time, the
// session continues with the new effects, and reports a loss. If a snippet does not end, the
// session starts from scratch.
func (g *Guest) replay(ctx context.Context) (*tiers.Loss, error) {
	var lost *tiers.Loss
	for i := range g.history.Past() {
		isSame, ended := g.history.RunAgain(ctx, i, func(*session.Past) (string, bool) {
			done, err := g.current.run(g.Accounts, i+1, g.about)
			return g.Accounts.Verdict(done.Code), err == nil
		})
		if !ended {
			return g.giveUp(ctx, i)
		}
		if isSame {
			continue
		}

		p := &g.history.Past()[i]
		p.Changed = "it gave a different result when it ran again"
		if lost == nil {
			lost = &tiers.Loss{
				Reason: "The session's Go program runs again for each snippet. Some snippets gave " +
					"another result than the first time, so their variables may have other " +
					"values now.",
			}
		}
		lost.Snippets = append(lost.Snippets, p.Ordinal)
	}
	return lost, nil
}

// giveUp clears a session in which the replay of snippet i did not end, if the snippet caused that.
func (g *Guest) giveUp(ctx context.Context, i int) (*tiers.Loss, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the session is unchanged
	}
	if fault := g.current.fault; fault != nil {
		return nil, fault // the session is unchanged
	}

	past := g.history.Past()
	n := past[i].Ordinal
	lost := &tiers.Loss{
		Reason: fmt.Sprintf(
			"Snippet %d did not end when it ran again, and the session starts again, empty.", n,
		),
	}

	for _, p := range past {
		lost.Snippets = append(lost.Snippets, p.Ordinal)
	}
	g.forget()
	return lost, fmt.Errorf("cannot run snippet %d again", n)
}

func (g *Guest) forget() {
	g.history.Forget()
	g.refs = nil
}

// Run runs the snippet.
func (g *Guest) Run(_ context.Context, s session.Snippet) session.Ending {
	if g.failure != nil {
		e := run.ExplainMistake(g.failure.Type, g.failure.Message, g.failure.Text)
		g.Accounts.Raise(&tiers.Exception{Type: e.Type, Message: e.Message, Traceback: e.Traceback})
		return session.Ending{Code: wire.CodeRaised}
	}

	g.history.Record(nil)
	g.Accounts.KeepLastWords()
	done, err := g.current.run(g.Accounts, len(g.history.Past())+1, g.about)
	ending := session.Ending{Code: done.Code, IsGone: err != nil, PeakMemory: g.current.peak()}
	if err != nil {
		ending.Code = g.examine(&ending.Crash)
	}
	g.Accounts.EditTraceback(func(text string) string { return g.quoteLines(text, s.Source) })
	ending.Crash.Traceback = g.quoteLines(ending.Crash.Traceback, s.Source)
	return ending
}

// Heal adds the snippet to the session if it ended by itself.
func (g *Guest) Heal(_ context.Context, s session.Snippet, isOrderly bool) (session.Healed, error) {
	if g.current == nil {
		return session.Healed{Kept: s.Ordinal}, nil
	}

	fault := g.current.fault
	g.discard()
	if !isOrderly {
		return session.Healed{Kept: s.Ordinal - 1, Fault: fault}, nil
	}

	g.history.Add(
		session.Past{Ordinal: s.Ordinal, Language: tiers.Go, Source: s.Source},
		g.Accounts.LastVerdict(),
	)
	g.refs = append(g.refs, g.newRefs)
	return session.Healed{Kept: s.Ordinal}, nil
}

func (g *Guest) discard() {
	g.close(g.current)
	g.current = nil
}

// close closes a program in the background, because removing a container takes as long as a
// compilation.
func (g *Guest) close(p *program) {
	g.closing.Go(func() { _ = p.close() }) // the wall logs the error, and removes the program later
}

// Export returns the session's snippets.
func (g *Guest) Export(context.Context) (tiers.State, error) {
	if g.wall == nil {
		return session.NewHistory(g.Accounts).Export(g.Tier, tiers.Go)
	}
	return g.history.Export(g.Tier, tiers.Go)
}

// Import continues a Go session of another tier. It repeats the snippets with the recorded answers
// to their host calls.
func (g *Guest) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	if state.Format != session.FormatReplay {
		return tiers.Report{}, g.rejectState(
			state, fmt.Sprintf("the state has the unknown format %q", state.Format),
		)
	}
	if err := g.open(ctx); err != nil {
		return tiers.Report{}, err
	}
	if err := g.history.Adopt(state); err != nil {
		return tiers.Report{}, g.rejectState(state, "the state cannot be read: "+err.Error())
	}
	past := g.history.Past()
	if len(past) > 0 {
		if err := g.rebuild(ctx, state); err != nil {
			g.forget()
			return tiers.Report{}, err
		}
	}

	g.Accounts.ContinueAfter(state.Snippet)
	return tiers.Report{Moved: len(past), Left: state.Left}, nil
}

// rebuild compiles the snippets of a state and runs them.
func (g *Guest) rebuild(ctx context.Context, state tiers.State) error {
	if err := g.findKinds(ctx); err != nil {
		return err
	}
	g.refs = make([][]build.Ref, len(g.history.Past()))
	program, refs, err := g.build(ctx)
	var failure *build.CompileError
	if errors.As(err, &failure) {
		return g.rejectState(state, "the session's snippets do not compile in this tier: "+failure.Message)
	}
	if err != nil {
		return &tiers.BrokenError{Tier: g.Tier, Effects: tiers.EffectsNeverRan, Err: err}
	}

	g.current, g.refs = program, refs
	defer g.discard()
	lost, err := g.replay(ctx)
	if ctx.Err() != nil {
		return &tiers.BrokenError{
			Tier: g.Tier, Effects: tiers.EffectsNeverRan, Err: context.Cause(ctx),
		}
	}
	if err != nil || lost != nil {
		return g.rejectState(state, "the session's snippets give other results in this tier")
	}
	return nil
}

func (g *Guest) rejectState(state tiers.State, why string) error {
	return &tiers.RejectedError{
		Tier: g.Tier, Missing: "state " + state.Format, Effects: tiers.EffectsNeverRan,
		Reason: fmt.Sprintf("it cannot continue a session of tier %s: %s", state.From, why),
	}
}

// Close ends the compiler and the unused relay, and waits until all programs are closed.
func (g *Guest) Close() error {
	if g.wall == nil {
		return nil
	}
	if g.current != nil {
		g.discard()
	}
	if g.next != nil {
		if unused := <-g.next; unused.program != nil {
			g.close(unused.program)
		}
		g.next = nil
	}

	err := g.compiler.close()
	g.closing.Wait()
	return err
}
