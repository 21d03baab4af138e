package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

func TestASessionStaysHome(t *testing.T) {
	interp, wasm, docker := newInterp(), newWasm(), newDocker()
	s := start(t, Config{}, interp, wasm, docker)
	if s.Home("") != "" {
		t.Error("a new session has a home")
	}
	s.in("interp", "set x 1", "")
	s.in("interp", "show x", "1\n")
	if s.Home(tiers.Python) != "interp" || s.Home(tiers.Go) != "" {
		t.Errorf("home is %q, of Go %q", s.Home(tiers.Python), s.Home(tiers.Go))
	}
	if interp.probes != 1 || wasm.probes+docker.probes != 1 || wasm.opened+docker.opened != 0 {
		t.Errorf("probes: interp %d, wasm %d, docker %d; opened: wasm %d, docker %d",
			interp.probes, wasm.probes, docker.probes, wasm.opened, docker.opened)
	}
}

func TestTheNamespaceMovesWhenItMust(t *testing.T) {
	var log bytes.Buffer
	interp, wasm, docker := newInterp(), newWasm(), newDocker()
	wasm.left = []tiers.Left{{Name: "g", Type: "generator", Reason: "it runs"}}
	s := start(t, Config{Log: slog.New(slog.NewJSONHandler(&log, nil))}, interp, wasm, docker)
	s.in("interp", "set x 1", "")
	r := s.in("wasm", "# import json\nshow x", "1\n")
	if r.Moved == nil || r.Moved.From != "interp" || r.Moved.To != "wasm" ||
		r.Moved.Report.Moved != 1 ||
		len(r.Moved.Report.Left) != 0 {
		t.Errorf("the move is %+v", r.Moved)
	}
	if interp.live() != 0 {
		t.Error("the old home lives on")
	}
	if r := s.in("wasm", "show x", "1\n"); r.Moved != nil || len(r.Attempts) != 0 {
		t.Error("it moved again, though the home could run it")
	}
	r = s.in("docker", "# import numpy\nshow x", "1\n")
	if !slices.Equal(r.Moved.Report.Left, wasm.left) {
		t.Errorf("left is %v, want what the export says, once", r.Moved.Report.Left)
	}
	s.in("docker", "show x", "1\n")
	if s.Home("") != "docker" || wasm.live() != 0 ||
		!strings.Contains(log.String(), `"from":"wasm","to":"docker","moved":1,"left":1`) {
		t.Errorf("home %q, log %s", s.Home(""), log.String())
	}
}

func TestEachLanguageHasAHome(t *testing.T) {
	interp, wasm := newInterp(), newWasm()
	s := start(t, Config{}, interp, wasm)
	s.in("wasm", "# import json\nset x 1", "")
	r, err := s.Run(t.Context(), tiers.Job{Language: tiers.Go, Source: "set y 2"})
	if err != nil || r.Tier != "interp" || r.Moved != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	s.in("wasm", "show x", "1\n")
	if s.Home(tiers.Go) != "interp" || s.Home(tiers.Python) != "wasm" {
		t.Error("the homes are mixed up")
	}
}

func TestAnUnusedSandboxHasNothingToMove(t *testing.T) {
	interp, wasm := newInterp(), newWasm()
	s := start(t, Config{}, interp, wasm)
	r := s.in("wasm", "need json", "")
	if r.Moved != nil || interp.opened != 1 || interp.live() != 0 {
		t.Errorf("moved %v, interp opened %d, live %d", r.Moved, interp.opened, interp.live())
	}
	if want := []router.Refusal{
		{Tier: "interp", Reason: "there is no module json", Effects: tiers.EffectsRan},
	}; !slices.Equal(r.Attempts, want) {
		t.Errorf("attempts %v", r.Attempts)
	}
	want := router.Refusal{Tier: "interp", Reason: "rejected the snippet: there is no module json"}
	if !slices.Contains(r.Plan.Refusals, want) {
		t.Errorf("refusals %v", r.Plan.Refusals)
	}
}

func TestADynamicImportMovesTheState(t *testing.T) {
	wasm, docker, local := newWasm(), newDocker(), newLocal()
	s := start(t, Config{Policy: router.Policy{AllowLocal: true}}, wasm, docker, local)
	s.in("wasm", "set x 1", "")
	if wasm.jobs[0].Rejectable {
		t.Error("a snippet that is certain is rejectable, which costs a checkpoint")
	}
	r := s.in("local", "# dynamic\nset x 2\nneed torch\nshow x", "2\n")
	if !wasm.jobs[1].Rejectable || local.jobs[0].Rejectable {
		t.Errorf("rejectable: wasm %v, local %v; want only where another is left",
			wasm.jobs[1].Rejectable, local.jobs[0].Rejectable)
	}
	if docker.opened != 0 {
		t.Error("docker was opened, though it lacks what wasm found missing")
	}
	if r.Moved == nil || r.Moved.To != "local" {
		t.Errorf("moved %+v", r.Moved)
	}
}

func TestTwoMovesForOneSnippetAreOneReport(t *testing.T) {
	interp, wasm, docker := newInterp(), newWasm(), newDocker()
	interp.left = []tiers.Left{{Name: "a", Type: "A", Reason: "no"}}
	wasm.left = []tiers.Left{{Name: "b", Type: "B", Reason: "no"}}
	s := start(t, Config{}, interp, wasm, docker)
	s.in("interp", "set x 1", "")
	r := s.in("docker", "# dynamic\nneed numpy\nshow x", "1\n")
	if r.Moved.From != "interp" || r.Moved.To != "docker" ||
		!slices.Equal(r.Moved.Report.Left, slices.Concat(interp.left, wasm.left)) {
		t.Errorf("moved %+v", r.Moved)
	}
}

func TestATierThatDoesNotKnowItsModulesMayRejectImports(t *testing.T) {
	wasm := newWasm()
	wasm.info.Modules = nil
	s := start(t, Config{}, wasm, newDocker())
	s.in("wasm", "print 1", "1\n")
	s.in("wasm", "# import json guarded\nprint 1", "1\n")
	s.in("docker", "# import numpy\nneed numpy", "")
	if wasm.jobs[0].Rejectable || wasm.jobs[1].Rejectable || !wasm.jobs[2].Rejectable {
		t.Errorf("jobs %+v", wasm.jobs)
	}
}

func TestModulesMissingEverywhereRaise(t *testing.T) {
	wasm, docker := newWasm(), newDocker()
	s := start(t, Config{}, wasm, docker)
	s.in("wasm", "set x 1", "")
	r := s.runs("# dynamic\nneed nosuch")
	if r.Tier != "wasm" || r.Status != tiers.StatusRaised ||
		r.Exception.Message != "No module named 'nosuch'" ||
		docker.opened != 0 ||
		len(r.Attempts) != 1 {
		t.Errorf("%+v", r)
	}
	s.in("wasm", "show x", "1\n")
	alone := start(t, Config{}, newWasm())
	if alone.runs("# dynamic\nneed nosuch").Status != tiers.StatusRaised {
		t.Error("it did not raise in the only tier")
	}
}

func TestAFailedImportLeavesTheNamespaceAtHome(t *testing.T) {
	t.Run("rejected: the next tier", func(t *testing.T) {
		wasm, docker, local := newWasm(), newDocker(), newLocal()
		local.imp = &tiers.RejectedError{
			Tier:    "local",
			Missing: "fake",
			Reason:  "it knows no such format",
			Effects: tiers.EffectsNeverRan,
		}
		s := start(t, Config{Policy: router.Policy{AllowLocal: true}}, wasm, docker, local)
		s.in("wasm", "set x 1", "")
		r := s.in("docker", "# import numpy\nshow x", "1\n")
		if len(r.Attempts) != 1 || r.Attempts[0].Tier != "local" || r.Moved.From != "wasm" {
			t.Errorf("attempts %v, moved %+v", r.Attempts, r.Moved)
		}
	})
	t.Run("broken: an error", func(t *testing.T) {
		wasm, docker := newWasm(), newDocker()
		docker.imp = errors.New("the daemon went away")
		s := start(t, Config{}, wasm, docker)
		s.in("wasm", "set x 1", "")
		r, err := s.fails("# import numpy\nshow x")
		broke(t, err, "docker", tiers.EffectsNeverRan)
		if r.Moved != nil || s.Home("") != "wasm" || docker.live() != 0 {
			t.Errorf("moved %+v, home %s", r.Moved, s.Home(""))
		}
		s.in("wasm", "show x", "1\n")
	})
	t.Run("nobody can take it", func(t *testing.T) {
		wasm, docker := newWasm(), newDocker()
		docker.single = true
		s := start(t, Config{}, wasm, docker)
		s.in("wasm", "set x 1", "")
		s.misses("wasm", "# import numpy\nneed numpy", "tier docker has the module numpy: "+
			"rejected the snippet: it cannot take a session's variables\n")
		s.in("wasm", "show x", "1\n")
	})
	t.Run("export broken", func(t *testing.T) {
		wasm, docker := newWasm(), newDocker()
		wasm.exp = errors.New("the interpreter is gone")
		s := start(t, Config{}, wasm, docker)
		s.in("wasm", "set x 1", "")
		_, err := s.fails("# import numpy")
		broke(t, err, "wasm", tiers.EffectsNeverRan)
		if docker.opened != 0 {
			t.Error("docker was opened")
		}
	})
	t.Run("no export", func(t *testing.T) {
		wasm := newWasm()
		wasm.single = true
		s := start(t, Config{}, wasm, newDocker())
		s.in("wasm", "set x 1", "")
		s.misses("wasm", "# import numpy\nneed numpy",
			"tier docker has the module numpy: the session's variables cannot leave tier wasm\n")
		if r := s.runs("# dynamic\nneed numpy"); r.Status != tiers.StatusRaised ||
			wasm.jobs[1].Rejectable {
			t.Error("it is asked to reject what can go nowhere")
		}
	})
}

// TestAnImportRefusesNoSnippet checks that a snippet gets the exception only if it reaches the
// import, and moves to another tier if that tier has the module.
func TestAnImportRefusesNoSnippet(t *testing.T) {
	broken := newDocker()
	broken.probe = func(context.Context) error { return errors.New("no daemon: start it") }
	wasm := newWasm()
	s := start(t, Config{}, newInterp(), wasm, broken, newLocal())
	s.in("wasm", "# import numpy\nprint fine", "fine\n")
	if wasm.jobs[0].Rejectable {
		t.Error("a snippet that can go nowhere is rejectable, which costs a checkpoint")
	}
	s.misses("wasm", "# import numpy\nneed numpy", "tier docker has the module numpy: "+
		"not usable on this machine: no daemon: start it\n"+
		"tier local has the module numpy: policy does not allow this tier: pass --allow-local\n")
	s.misses("wasm", "# import nosuch\nneed nosuch",
		"no tier is known to have the module nosuch: add a pure-Python package with --with nosuch; "+
			"for any other, an image can have it, but tier docker is refused: no daemon: start it\n")
	s.misses("wasm", "# import sklearn\nneed sklearn", "no tier is known to have the module sklearn: "+
		"its package needs compiled code, which --with cannot add; "+
		"an image can have it, but tier docker is refused: no daemon: start it\n")
	s.misses("wasm", "# import tkinter\nneed tkinter",
		"no sandbox has the module tkinter of the standard library\n")

	t.Run("an image is advised where it would help", func(t *testing.T) {
		s := start(t, Config{}, newWasm(), newDocker())
		s.misses("wasm", "# import nosuch\nneed nosuch", "no tier is known to have the module nosuch: "+
			"add a pure-Python package with --with nosuch; for any other, build an image with "+
			"rlm images build --name nosuch --with nosuch and pass --image nosuch\n")
	})
	t.Run("a tier that the policy excludes is not asked", func(t *testing.T) {
		asked := func(context.Context) error {
			t.Error("it is asked")
			return nil
		}
		local, docker := newLocal(), newDocker()
		local.probe, docker.probe = asked, asked
		s := start(t, Config{Policy: router.Policy{MinIsolation: tiers.IsolationWasm, Tiers: []string{"wasm"}}},
			newWasm(), docker, local)
		s.misses("wasm", "# import numpy\nneed numpy", "tier docker has the module numpy: "+
			"policy allows only the tiers wasm\n"+
			"tier local has the module numpy: policy allows only the tiers wasm\n")
		s.misses("wasm", "# import nosuch\nneed nosuch", "no tier is known to have the module nosuch: "+
			"add a pure-Python package with --with nosuch; for any other, an image can have it, "+
			"but tier docker is refused: policy allows only the tiers wasm\n")

		s = start(t, Config{}, newWasm(), local)
		s.misses("wasm", "# import numpy\nneed numpy",
			"tier local has the module numpy: policy does not allow this tier: pass --allow-local\n")
	})
	t.Run("a pure package that an image has can be added", func(t *testing.T) {
		docker := newDocker()
		docker.info.Modules = tiers.ModuleSet("tabulate", "curses")
		docker.probe = func(context.Context) error { return errors.New("no daemon: start it") }
		s := start(t, Config{}, newWasm(), docker)
		s.misses("wasm", "# import tabulate\nneed tabulate", "tier docker has the module tabulate: "+
			"not usable on this machine: no daemon: start it\n"+
			"add its pure-Python package with --with tabulate\n")
		s.misses("wasm", "# import curses\nneed curses", "tier docker has the module curses: "+
			"not usable on this machine: no daemon: start it\n")
	})
	t.Run("a guarded one is not asked for", func(t *testing.T) {
		s := start(t, Config{}, newWasm(), newDocker())
		s.in("wasm", "# import numpy guarded\nprint fine", "fine\n")
	})
	t.Run("an unlikely one moves on when it is reached", func(t *testing.T) {
		wasm := newWasm()
		s := start(t, Config{}, wasm, newDocker())
		s.in("wasm", "# import numpy unlikely\nset x 1", "")
		if !wasm.jobs[0].Rejectable {
			t.Error("it could not move on")
		}
		s.in("docker", "# import numpy unlikely\nneed numpy\nshow x", "1\n")
	})
	t.Run("each tier lacks another module", func(t *testing.T) {
		docker, local := newDocker(), newLocal()
		local.info.Modules = tiers.ModuleSet("torch")
		s := start(t, Config{Policy: router.Policy{AllowLocal: true}}, docker, local)
		s.in("local", "# import numpy\n# import torch\nset x 1", "")
		r := s.in("docker", "# import numpy\n# import torch\nneed numpy\nshow x", "1\n")
		if len(r.Attempts) != 1 || r.Attempts[0].Tier != "local" {
			t.Errorf("attempts %v", r.Attempts)
		}
		s.misses("local", "# import numpy\n# import torch\nneed numpy\nneed torch",
			"tier docker has the module numpy: rejected the snippet: there is no module torch\n")
	})
}

// misses runs a snippet, which must get the exception of a missing module in the given tier, with
// the given advice at the end of its traceback.
func (s *session) misses(tier, source, advice string) {
	s.t.Helper()
	r := s.runs(source)
	if r.Tier != tier || r.Exception == nil || r.Exception.Type != "ModuleNotFoundError" ||
		!strings.HasSuffix(r.Exception.Traceback, "'\n"+advice) {
		s.t.Errorf("%q ran in %q: %+v; want a traceback that ends with %q", source, r.Tier, r.Exception, advice)
	}
}

func TestABrokenTierEndsTheSnippet(t *testing.T) {
	wasm, docker, local := newWasm(), newDocker(), newLocal()
	docker.opens = errors.New("no memory left")
	policy := router.Policy{
		Tiers: []string{"wasm", "docker", "local"}, MinIsolation: tiers.IsolationContainer,
	}
	s := start(t, Config{Policy: policy}, wasm, docker, local)
	s.in("wasm", "set x 1", "")
	_, err := s.fails("# import numpy")
	broke(t, err, "docker", tiers.EffectsNeverRan)
	r, err := s.fails("set x 2\nbreak")
	broke(t, err, "wasm", tiers.EffectsUnknown)
	if r.Tier != "wasm" || local.opened != 0 {
		t.Errorf("tier %q", r.Tier)
	}
	s.in("wasm", "show x", "1\n")
	t.Run("in the middle of a chain", func(t *testing.T) {
		interp, wasm, docker := newInterp(), newWasm(), newDocker()
		wasm.opens = &tiers.BrokenError{
			Tier:    "wasm",
			Effects: tiers.EffectsNeverRan,
			Err:     errors.New("no memory"),
		}
		s := start(t, Config{}, interp, wasm, docker)
		_, err := s.fails("need json")
		broke(t, err, "wasm", tiers.EffectsNeverRan)
		if docker.opened != 0 {
			t.Error("it went on")
		}
	})
}

func TestTheRouterFailsClosed(t *testing.T) {
	docker := newDocker()
	docker.probe = func(context.Context) error { return errors.New("no daemon") }
	s := start(t, Config{Policy: router.Policy{Pin: "docker"}}, newWasm(), docker)
	_, err := s.fails("print 1")
	var none *router.NoTierError
	if !errors.As(err, &none) || none.Effects != tiers.EffectsNeverRan ||
		!strings.Contains(err.Error(), "tier docker: not usable on this machine: no daemon") {
		t.Error(err)
	}
	_, _ = s.fails("print 1")
	if docker.probes != 1 {
		t.Errorf("%d probes", docker.probes)
	}
}

func TestAnUnusableTierIsPassedOver(t *testing.T) {
	wasm := newWasm()
	wasm.probe = func(context.Context) error { return errors.New("wrong processor") }
	s := start(t, Config{}, wasm, newDocker())
	r := s.in("docker", "print 1", "1\n")
	want := router.Refusal{Tier: "wasm", Reason: "not usable on this machine: wrong processor"}
	if !slices.Contains(r.Plan.Refusals, want) {
		t.Errorf("refusals %v", r.Plan.Refusals)
	}
}

func TestSessionsShareProbes(t *testing.T) {
	wasm, probes := newWasm(), &Probes{}
	for range 3 {
		t.Run("session", func(t *testing.T) {
			start(t, Config{Probes: probes}, wasm).in("wasm", "print 1", "1\n")
		})
	}
	if wasm.probes != 1 {
		t.Errorf("%d probes", wasm.probes)
	}
}

func TestAProbeThatWasCancelledIsAskedAgain(t *testing.T) {
	wasm := newWasm()
	wasm.probe = func(ctx context.Context) error { return ctx.Err() }
	s := start(t, Config{}, wasm)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Run(ctx, tiers.Job{Source: "print 1"})
	broke(t, err, "router", tiers.EffectsNeverRan)
	s.in("wasm", "print 1", "1\n")
}

func TestAnInvalidSnippetTroublesNoTier(t *testing.T) {
	interp, wasm, local := newInterp(), newWasm(), newLocal()
	local.probe = func(context.Context) error {
		t.Error("a tier is asked")
		return nil
	}
	s := start(t, Config{}, interp, wasm, local)
	r := s.runs("# invalid")
	if r.Status != tiers.StatusRaised || r.Exception.Type != "SyntaxError" ||
		r.Exception.Traceback == "" ||
		r.Stderr != "" ||
		r.Tier != "" ||
		interp.opened+wasm.opened != 0 {
		t.Errorf("%+v", r)
	}
	s.in("interp", "set x 1", "")
	if r := s.runs("# invalid\nnonsense"); r.Tier != "interp" || r.Status != tiers.StatusRaised {
		t.Errorf("the home was not asked: %+v", r)
	}
	if r := s.runs("# invalid\nreject"); r.Tier != "" || r.Exception.Type != "SyntaxError" ||
		wasm.opened != 0 {
		t.Errorf("a home that rejects it: %+v", r)
	}
}

// TestAnInvalidSnippetHasItsNumber checks that the exception of an invalid snippet contains the
// snippet's number.
func TestAnInvalidSnippetHasItsNumber(t *testing.T) {
	s := start(t, Config{}, newInterp(), newWasm())
	for number, source := range []string{"# invalid", "set x 1", "show x"} {
		if number > 0 {
			s.runs(source)
		}
		r := s.runs("# invalid\nreject")
		name := fmt.Sprintf("<snippet %d>", number+1)
		if want := fmt.Sprintf("invalid syntax (%s, line 1)", name); r.Exception.Message != want {
			t.Errorf("the message is %q, want %q", r.Exception.Message, want)
		}
		want := fmt.Sprintf("  File %q, line 1\n    # invalid \"<snippet>\"\nSyntaxError: invalid syntax\n", name)
		if r.Exception.Traceback != want {
			t.Errorf("the traceback is %q, want %q", r.Exception.Traceback, want)
		}
	}
}

// TestAFunctionNeedsItsModulesWhenItIsUsed checks a function with an import that a later snippet
// uses.
func TestAFunctionNeedsItsModulesWhenItIsUsed(t *testing.T) {
	s := start(t, Config{}, newWasm(), newDocker())
	s.in("wasm", "# later f numpy\nset f 1", "")
	s.in("wasm", "# reads g\nshow f", "1\n")
	plan, err := s.Explain(t.Context(), tiers.Job{Source: "# reads f\nshow f"})
	if err != nil || plan.Refusals[0].Reason != "lacks the module numpy (in f)" ||
		!strings.Contains(plan.Text(), "imports numpy (in f)") {
		t.Errorf("%+v, %v", plan, err)
	}

	forked, err := s.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer forked.Close()
	s.in("wasm", "# writes f\nset f 2", "")
	s.in("wasm", "# reads f\nshow f", "2\n")
	r, err := forked.Run(t.Context(), tiers.Job{Source: "# reads f\nshow f"})
	if err != nil || r.Tier != "docker" || r.Stdout != "1\n" {
		t.Errorf("the fork: %+v, %v", r, err)
	}
}

// TestARestoredSessionFindsOutWhatItNeeds checks a restored session, for whose functions no needs
// are recorded.
func TestARestoredSessionFindsOutWhatItNeeds(t *testing.T) {
	first := start(t, Config{}, newWasm(), newDocker())
	first.in("wasm", "# later f numpy\nset f 1", "")
	state, err := first.Export(t.Context(), tiers.Python)
	if err != nil {
		t.Fatal(err)
	}

	second := start(t, Config{}, newWasm(), newDocker())
	if _, err := second.Import(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	second.in("wasm", "show f", "1\n")
	second.in("docker", "# reads f\nneed numpy\nshow f", "1\n")
}

// TestAModuleOfAFunctionMustBeAllowedWhenItIsUsed checks that the policy's modules apply to a
// function that a snippet uses.
func TestAModuleOfAFunctionMustBeAllowedWhenItIsUsed(t *testing.T) {
	s := start(t, Config{Policy: router.Policy{Modules: []string{"json"}}}, newWasm(), newDocker())
	s.in("wasm", "# later f numpy\nset f 1", "")
	_, err := s.Run(t.Context(), tiers.Job{Source: "# reads f\nshow f"})
	if !errors.Is(err, router.ErrNoTier) ||
		!strings.Contains(err.Error(), "policy does not allow the module numpy (in f)") {
		t.Errorf("got %v", err)
	}
}

func TestUnanalysedSnippetsGoToAWholeLanguage(t *testing.T) {
	for _, source := range []string{"# unknown\nprint 1", "# broken\nprint 1"} {
		t.Run(source, func(t *testing.T) {
			wasm := newWasm()
			s := start(t, Config{}, newInterp(), wasm, newDocker())
			s.in("wasm", source, "1\n")
			if !wasm.jobs[0].Rejectable {
				t.Error("it is not rejectable")
			}
		})
	}
	s := start(t, Config{}, newInterp())
	s.cfg.Analysers = nil
	if _, err := s.fails("print 1"); !strings.Contains(err.Error(), "no analyser supports") {
		t.Error(err)
	}
}

func TestACancelledRunIsAnError(t *testing.T) {
	wasm := newWasm()
	s := start(t, Config{}, wasm, newDocker())
	s.in("wasm", "set x 1", "")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the caller went home")
	go cancel(cause)
	_, err := s.Run(ctx, tiers.Job{Source: "hang"})
	if lost := broke(t, err, "wasm", tiers.EffectsRan); !errors.Is(err, cause) || lost == nil {
		t.Error(err)
	}
	s.in("wasm", "show x", "1\n")
}

func TestOutputOfARejectedAttemptIsNotRepeated(t *testing.T) {
	var out bytes.Buffer
	s := start(t, Config{}, newWasm(), newDocker())
	r, err := s.Run(t.Context(),
		tiers.Job{Source: "# dynamic\nprint 1\nprint 2\nneed numpy\nprint 3", Stdout: &out})
	if err != nil || out.String() != "1\n2\n3\n" || r.Stdout != "1\n2\n3\n" {
		t.Errorf("%v, the caller saw %q, the result has %q", err, out.String(), r.Stdout)
	}
}

func TestExplainRunsNothing(t *testing.T) {
	wasm, docker := newWasm(), newDocker()
	docker.probe = func(context.Context) error { return errors.New("no daemon") }
	s := start(t, Config{}, wasm, docker)
	plan, err := s.Explain(t.Context(), tiers.Job{Source: "print 1"})
	if err != nil || len(plan.Chain) != 1 || plan.Chain[0].Tier != "wasm" || plan.Err() != nil || wasm.probes != 1 ||
		docker.probes != 1 ||
		wasm.opened != 0 {
		t.Errorf("%v, %s", err, plan.Text())
	}
	if plan, err = s.Explain(t.Context(), tiers.Job{Source: "# feature processes"}); err != nil ||
		!errors.Is(plan.Err(), router.ErrNoTier) {
		t.Errorf("%v, %v", err, plan.Err())
	}
}

func TestAForkGoesItsOwnWay(t *testing.T) {
	for _, noFork := range []bool{false, true} {
		wasm := newWasm()
		wasm.noFork = noFork
		s := start(t, Config{Config: tiers.Config{Host: echo}}, wasm, newDocker())
		s.in("wasm", "set x 1", "")
		forked, err := s.Fork(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := &session{forked, t}
		other.in("wasm", "set x 2", "")
		s.in("wasm", "show x", "1\n")
		other.in("docker", "# dynamic\ncall ask 1\nneed numpy\nshow x", "1\n2\n")
		s.in("wasm", "call ask 1\nshow x", "1\n1\n")
		if err := forked.Close(); err != nil {
			t.Error(err)
		}
		wasm.left = []tiers.Left{{Name: "g", Type: "generator", Reason: "it runs"}}
		if forked, err = s.Fork(t.Context()); err == nil {
			err = forked.Close()
		}
		const want = "the variable g (generator) cannot be copied: it runs"
		if noFork != (err != nil && strings.Contains(err.Error(), want)) {
			t.Errorf("without a fork of its own (%v): %v", noFork, err)
		}
	}
}

func TestInputsAreShared(t *testing.T) {
	wasm, docker := newWasm(), newDocker()
	s := start(t, Config{Config: tiers.Config{Inputs: []tiers.Input{{Name: "big"}}}}, wasm,
		docker)
	s.in("wasm", "print 1", "1\n")
	s.in("docker", "# import numpy\nprint 1", "1\n")
	if wasm.inputs[0] != docker.inputs[0] {
		t.Error("the inputs were copied")
	}
}

func TestAClosedSessionSaysSo(t *testing.T) {
	s := start(t, Config{}, newWasm())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.fails("print 1")
	broke(t, err, "router", tiers.EffectsNeverRan)
	if _, err := s.Explain(t.Context(), tiers.Job{}); err == nil {
		t.Error("it explains")
	}
	if _, err := s.Fork(t.Context()); err == nil {
		t.Error("it forks")
	}
}

func TestAnImpossiblePolicyIsRefused(t *testing.T) {
	if _, err := New(Config{Policy: router.Policy{Modules: []string{""}}}); err == nil {
		t.Error("a module without a name is allowed")
	}
}

func TestNamesOfTiersAreUnique(t *testing.T) {
	if _, err := New(Config{Tiers: []tiers.Tier{newWasm(), newWasm()}}); err == nil {
		t.Error("two tiers have one name")
	}
	negative := tiers.Config{Limits: tiers.Limits{Wall: -1}}
	if _, err := New(Config{Config: negative}); err == nil {
		t.Error("a negative limit passes")
	}
}

func BenchmarkRunnerAtHome(b *testing.B) {
	for _, c := range []struct {
		name string
		host tiers.Host
	}{{"no-host", nil}, {"host", echo}} {
		b.Run(c.name, func(b *testing.B) {
			verdict := router.Verdict{Needs: &router.Needs{
				Imports: []router.Import{{Module: "json", Line: 1}, {Module: "re", Line: 2}},
			}}
			analyse := func(context.Context, string) (router.Verdict, error) { return verdict, nil }
			r, err := New(Config{
				Tiers:     []tiers.Tier{newInterp(), newWasm(), newDocker(), newLocal()},
				Analysers: map[tiers.Language]Analyser{tiers.Python: analyserFunc(analyse)},
				Config:    tiers.Config{Host: c.host},
			})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Run(b.Context(), tiers.Job{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestATierIsToldTheLanguageThatItIsOpenedFor(t *testing.T) {
	local := newLocal()
	s := start(t, Config{Policy: router.Policy{Pin: "local"}}, local)
	s.runs("say 1")
	if _, err := s.Run(t.Context(), tiers.Job{Language: tiers.Go, Source: "say 1"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(local.spoken, []tiers.Language{tiers.Python, tiers.Go}) {
		t.Errorf("%q", local.spoken)
	}
}
