package rlm_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/repl/reflexion"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/repl/workflow"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/tiers"
)

// fakeTier is a tier that a user of the package could implement. Its snippets wait until the host
// releases them, or echo their source.
type fakeTier struct {
	name    string
	configs chan tiers.Config
	begun   chan struct{}

	mu     sync.Mutex
	closed int
}

func newFakeTier(name string) *fakeTier {
	return &fakeTier{
		name:    name,
		configs: make(chan tiers.Config, 100),
		begun:   make(chan struct{}, 100),
	}
}

func (f *fakeTier) Info() tiers.Info {
	return tiers.Info{
		Name: f.name, Languages: []tiers.Language{tiers.Python}, Isolation: tiers.IsolationKernel,
		Features: []tiers.Feature{tiers.FeatureDynamic, tiers.FeatureSockets},
	}
}

func (f *fakeTier) Probe(context.Context) error { return nil }

func (f *fakeTier) Warm(context.Context) error { return nil }

func (f *fakeTier) Open(_ context.Context, cfg tiers.Config) (tiers.Sandbox, error) {
	f.configs <- cfg
	return &fakeSandbox{tier: f}, nil
}

func (f *fakeTier) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

type fakeSandbox struct{ tier *fakeTier }

func (b *fakeSandbox) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	if job.Source == "wait" {
		b.tier.begun <- struct{}{}
		<-ctx.Done()
		return tiers.Result{}, &tiers.BrokenError{
			Tier:    b.tier.name,
			Effects: tiers.EffectsRan,
			Err:     ctx.Err(),
		}
	}
	return tiers.Result{Status: tiers.StatusOK, Stdout: job.Source}, nil
}

func (b *fakeSandbox) Close() error { return nil }

// engineOf returns an engine with one tier.
func engineOf(t *testing.T, tier tiers.Tier, log *slog.Logger) *rlm.Engine {
	t.Helper()
	return newEngine(t, rlm.Options{CacheDir: "none", Tiers: only(tier), Log: log})
}

// pinned returns the configuration of a session in the tier "mine", whose snippets are not
// analysed.
func pinned() rlm.SessionConfig {
	return rlm.SessionConfig{Policy: router.Policy{Pin: "mine"}}
}

func TestAnEngineRunsTheTiersOfItsUser(t *testing.T) {
	fake := newFakeTier("mine")
	engine := engineOf(t, fake, nil)
	if all := engine.Tiers(); len(all) != 1 || all[0] != tiers.Tier(fake) {
		t.Errorf("the tiers are %v", all)
	}
	session, err := engine.Open(t.Context(), pinned())
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.Run(t.Context(), "anything")
	if err != nil || result.Tier != "mine" || result.Stdout != "anything" {
		t.Errorf("%+v, %v", result, err)
	}
	for range 2 {
		if err := engine.Close(); err != nil || fake.closed != 1 {
			t.Errorf("the tier was closed %d times: %v", fake.closed, err)
		}
	}
	_, err = rlm.New(
		rlm.Options{CacheDir: "none", Tiers: only(newFakeTier("a"), newFakeTier("a"))},
	)
	if err == nil || !strings.Contains(err.Error(), "two tiers") {
		t.Errorf("two tiers of one name: %v", err)
	}
}

// TestTiersGetTheTierWasm replaces the tier wasm with another tier.
func TestTiersGetTheTierWasm(t *testing.T) {
	fake := newFakeTier("mine")
	engine := newEngine(t, rlm.Options{
		CacheDir: "none",
		Tiers: func(wasm tiers.Tier) ([]tiers.Tier, error) {
			if name := wasm.Info().Name; name != rlm.TierWasm {
				t.Errorf("the engine's own tier is %s", name)
			}
			return standard.Tiers(standard.Options{})(fake)
		},
	})
	session, err := engine.Open(t.Context(), pinned())
	if err != nil {
		t.Fatal(err)
	}
	if result, err := session.Run(t.Context(), "anything"); err != nil || result.Tier != "mine" {
		t.Errorf("%+v, %v", result, err)
	}

	refused := errors.New("no wall here")
	_, err = rlm.New(rlm.Options{
		CacheDir: "none", Tiers: func(tiers.Tier) ([]tiers.Tier, error) { return nil, refused },
	})
	if !errors.Is(err, refused) {
		t.Errorf("an error of the change is %v", err)
	}
}

// only returns an option with exactly these tiers.
func only(list ...tiers.Tier) func(tiers.Tier) ([]tiers.Tier, error) {
	return func(tiers.Tier) ([]tiers.Tier, error) { return list, nil }
}

func TestASessionHasOneOwner(t *testing.T) {
	fake := newFakeTier("mine")
	session, err := engineOf(t, fake, nil).Open(t.Context(), pinned())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := session.Run(ctx, "wait")
		ended <- err
	}()
	<-fake.begun
	for name, use := range uses(t, session) {
		if err := use(); !errors.Is(err, rlm.ErrInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := session.Close(); !errors.Is(err, rlm.ErrInUse) {
		t.Errorf("Close: %v", err)
	}
	session.Variables() // may be called at any time
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, rlm.ErrClosed) {
		t.Errorf("the snippet ends with %v", err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	for name, use := range uses(t, session) {
		if err := use(); !errors.Is(err, rlm.ErrClosed) {
			t.Errorf("%s of a closed session: %v", name, err)
		}
	}
}

// uses returns the methods of a session that need exclusive use of it.
func uses(t *testing.T, s *rlm.Session) map[string]func() error {
	t.Helper()
	ctx, n := t.Context(), 0
	return map[string]func() error{
		"Run":           func() error { _, err := s.Run(ctx, "1"); return err },
		"Explain":       func() error { _, err := s.Explain(ctx, tiers.Job{}); return err },
		"Set":           func() error { return s.Set(ctx, "n", 1) },
		"Get":           func() error { return s.Get(ctx, "n", &n) },
		"AddContext":    func() error { return s.AddContext(ctx, rlm.Text("t", "t")) },
		"CheckContexts": func() error { _, err := s.CheckContexts(ctx); return err },
		"AddFunctions":  func() error { return s.AddFunctions(ctx, rlm.Func("ping", "", ping)) },
		"Fork":          func() error { _, err := s.Fork(ctx); return err },
		"Snapshot":      func() error { return s.Snapshot(ctx, &bytes.Buffer{}) },
		"Restore":       func() error { _, err := s.Restore(ctx, strings.NewReader("")); return err },
		"Files":         func() error { _, err := s.Files(ctx, t.TempDir()); return err },
	}
}

func TestCloseOfAnEngineEndsWhatRuns(t *testing.T) {
	fake := newFakeTier("mine")
	engine := engineOf(t, fake, nil)
	var running sync.WaitGroup
	sessions := make([]*rlm.Session, 3)
	for i := range sessions {
		var err error
		if sessions[i], err = engine.Open(t.Context(), pinned()); err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			_, err := sessions[i].Run(context.Background(), "wait")
			if !errors.Is(err, rlm.ErrClosed) {
				t.Errorf("the snippet ends with %v", err)
			}
		})
		<-fake.begun
	}
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := engine.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closing.Wait()
	running.Wait()
	for _, session := range sessions {
		if _, err := session.Run(t.Context(), "1"); !errors.Is(err, rlm.ErrClosed) {
			t.Errorf("a session after it: %v", err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := engine.Open(t.Context(), rlm.SessionConfig{}); !errors.Is(err, rlm.ErrClosed) {
		t.Errorf("Open: %v", err)
	}
	var setup *rlm.SetupError
	if _, err := engine.Ask(t.Context(), rlm.Task{}); !errors.Is(err, rlm.ErrClosed) ||
		!errors.As(err, &setup) {
		t.Errorf("Answer: %v", err)
	}
}

func TestLabelsReachTheSandboxAndTheLog(t *testing.T) {
	var out bytes.Buffer
	fake := newFakeTier("mine")
	engine := engineOf(t, fake, slog.New(slog.NewTextHandler(&out, nil)))
	cfg := pinned()
	cfg.Labels = map[string]string{"tenant": "acme", "request": "r-1"}
	session, err := engine.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Run(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if got := (<-fake.configs).Labels; len(got) != 2 || got["tenant"] != "acme" {
		t.Errorf("the tier gets %v", got)
	}

	for name, labels := range map[string]map[string]string{
		"a name with a space": {"a b": "c"},
		"no name":             {"": "c"},
		"a capital":           {"Tenant": "c"},
		"a line":              {"tenant": "a\nb"},
		"not UTF-8":           {"tenant": "\xff"},
		"a long value":        {"tenant": strings.Repeat("x", 257)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := engine.Open(t.Context(), rlm.SessionConfig{Labels: labels}); err == nil {
				t.Errorf("%s: the session opens", name)
			}
		})
	}
}

func TestAContextCanBeAddedWhileTheSessionLives(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	prints(t, session, "print('context' in globals())", "False\n")
	err := session.AddContext(t.Context(), rlm.Text("a", "first"), rlm.Value("b", 2))
	if err != nil {
		t.Fatal(err)
	}
	prints(t, session, "print(context, context_1)", "first 2\n")
	err = session.AddContext(t.Context(), rlm.Text("c", "third"), rlm.File("missing"))
	if err == nil {
		t.Error("a missing file is not an error")
	}
	prints(t, session, "print('context_2' in globals())", "False\n")

	fork, err := session.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Close()
	if err := fork.AddContext(t.Context(), rlm.Text("c", "of the fork")); err != nil {
		t.Fatal(err)
	}
	prints(t, fork, "print(context_2, context)", "of the fork first\n")
	prints(t, session, "print('context_2' in globals())", "False\n")
}

func TestFunctionsCanBeAddedWhileTheSessionLives(t *testing.T) {
	session := open(t, rlm.SessionConfig{Functions: []rlm.Function{rlm.Func("ping", "", ping)}})
	prints(t, session, "print(ping(), 'pong' in globals())", "1 False\n")
	fork, err := session.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Close()
	says := func(text string) rlm.Function {
		return rlm.Func("pong", "",
			func(context.Context, struct{}) (string, error) { return text, nil })
	}
	if err := session.AddFunctions(t.Context(), says("of the origin")); err != nil {
		t.Fatal(err)
	}
	if err := fork.AddFunctions(t.Context(), says("of the fork")); err != nil {
		t.Fatal(err)
	}
	prints(t, session, "print(pong(), ping())", "of the origin 1\n")
	prints(t, fork, "print(pong(), ping())", "of the fork 1\n")
	if err := session.AddFunctions(t.Context(), says("again")); err == nil ||
		!strings.Contains(err.Error(), "the name is taken") {
		t.Errorf("a name twice: %v", err)
	}
	prints(t, session, "print(pong())", "of the origin\n")
}

func TestAHostFunctionMayCloseNothingButKnowsIt(t *testing.T) {
	var session *rlm.Session
	inside := make(chan error, 2)
	session = open(t, rlm.SessionConfig{Functions: []rlm.Function{
		rlm.Func("inside", "", func(ctx context.Context, _ struct{}) (int, error) {
			_, err := session.Run(ctx, "1")
			inside <- err
			inside <- session.Close()
			return 1, nil
		}),
	}})
	prints(t, session, "print(inside())", "1\n")
	for range 2 {
		select {
		case err := <-inside:
			if !errors.Is(err, rlm.ErrInUse) {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the function hangs")
		}
	}
}

func TestAWorkflowWithoutAFileIsRefused(t *testing.T) {
	engine := engineOf(t, newFakeTier("mine"), nil)
	var setup *rlm.SetupError
	outcome, err := workflow.RunOn(t.Context(), engine, workflow.Task{})
	if !errors.As(err, &setup) || outcome.Status != ledger.StatusFailed {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// silentModels never report whether they serve a model. Asking them cancels the caller's context.
type silentModels struct {
	llm.Provider
	leave func()
}

// Resolve implements repl.Models.
func (s silentModels) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: s}, nil
}

// Check waits until the context ends.
func (s silentModels) Check(ctx context.Context, _ string) error {
	s.leave()
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestALoopThatEndsWhileItPreparesHasTheCause(t *testing.T) {
	engine := engineOf(t, newFakeTier("mine"), nil)
	for name, loop := range map[string]func(context.Context, silentModels) error{
		"Answer": func(ctx context.Context, models silentModels) error {
			cfg := run.Config{Question: "q", Models: models, Model: "m"}
			_, err := engine.Ask(ctx, rlm.Task{Config: cfg})
			return err
		},
		"Reflect": func(ctx context.Context, models silentModels) error {
			cfg := reflect.Config{Models: models, Model: "m"}
			_, err := reflect.RunOn(ctx, engine, reflect.Task{Config: cfg})
			return err
		},
		"Reflexion": func(ctx context.Context, models silentModels) error {
			cfg := reflexion.Config{Models: models, Model: "m"}
			_, err := reflexion.RunOn(ctx, engine, reflexion.Task{Config: cfg})
			return err
		},
		"Distill": func(ctx context.Context, models silentModels) error {
			cfg := distill.Config{Run: run.Config{Question: "q", Models: models, Model: "m"}}
			_, err := distill.RunOn(ctx, engine, distill.Task{Config: cfg})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			cause := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			models := silentModels{leave: func() { cancel(cause) }}

			var setup *rlm.SetupError
			if err := loop(ctx, models); !errors.Is(err, cause) || errors.As(err, &setup) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestASessionDoesNotShareItsConfiguration(t *testing.T) {
	fake := newFakeTier("mine")
	cfg := pinned()
	cfg.Labels = map[string]string{"tenant": "a"}
	cfg.Policy.Hosts = []string{"a.example:443"}
	session, err := engineOf(t, fake, nil).Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}

	cfg.Labels["tenant"], cfg.Policy.Hosts[0] = "b", "b.example:443"
	if _, err := session.Run(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if got := <-fake.configs; got.Labels["tenant"] != "a" || got.Hosts[0] != "a.example:443" {
		t.Errorf("the sandbox has %v and %v", got.Labels, got.Hosts)
	}
}

func TestAFunctionDoesNotHideAVariable(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	prints(t, session, "ping = 1", "")
	err := session.AddFunctions(t.Context(), rlm.Func("ping", "", ping))
	if err == nil || !strings.Contains(err.Error(), "has a variable ping") {
		t.Error(err)
	}
	prints(t, session, "print(ping)", "1\n")
}

// stuckReader blocks until its test ends.
type stuckReader struct {
	begun chan<- struct{}
	end   <-chan struct{}
}

func (r stuckReader) Read([]byte) (int, error) {
	r.begun <- struct{}{}
	<-r.end
	return 0, errors.New("the test has ended")
}

func TestCloseDoesNotWaitForAReader(t *testing.T) {
	for name, use := range map[string]func(*rlm.Session, stuckReader) error{
		"Restore": func(s *rlm.Session, r stuckReader) error {
			_, err := s.Restore(t.Context(), r)
			return err
		},
		"AddContext": func(s *rlm.Session, r stuckReader) error {
			return s.AddContext(t.Context(), rlm.Reader("r", r, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine := engineOf(t, newFakeTier("mine"), nil)
			session, err := engine.Open(t.Context(), pinned())
			if err != nil {
				t.Fatal(err)
			}
			begun, end, ended := make(chan struct{}, 8), make(chan struct{}), make(chan error)
			go func() { ended <- use(session, stuckReader{begun, end}) }()
			<-begun
			if err := engine.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			close(end)
			if err := <-ended; err == nil {
				t.Errorf("%s succeeds", name)
			}
		})
	}
}

func TestATaskThatCannotBeginIsASetupError(t *testing.T) {
	engine, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	for name, task := range map[string]rlm.Task{
		"no registry":  {Config: run.Config{Question: "q", Model: "a/b"}},
		"no context":   {Contexts: []rlm.Context{rlm.File("missing")}},
		"empty output": {Contexts: []rlm.Context{rlm.Reader("r", strings.NewReader(""), 10)}},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, err := engine.Ask(t.Context(), task)
			var setup *rlm.SetupError
			if !errors.As(err, &setup) || outcome.Status != "failed" || outcome.Reason == "" {
				t.Errorf("%s: %+v, %v", name, outcome, err)
			}
		})
	}
}
