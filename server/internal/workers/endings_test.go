//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

func tenant(name string) tiers.Config {
	return tiers.Config{Labels: map[string]string{"tenant": name}}
}

// endings records how workers end.
type endings struct {
	mu  sync.Mutex
	all []Ending
}

func (e *endings) add(one Ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, one)
}

func (e *endings) list() []Ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all
}

// TestTheEndOfAWorkerTouchesOnlyItsSessions ends a worker in each way. It checks that the worker's
// session is restored from its saved state and reports its loss, and that a session in another
// worker is unaffected.
func TestTheEndOfAWorkerTouchesOnlyItsSessions(t *testing.T) {
	ended := &endings{}
	tier := openTier(t, Options{
		SaveAfter: time.Hour, Memory: 2 << 30, Ended: ended.add, // more than one worker can use
	})
	neighbour := open(t, tier, tenant("neighbour"))
	runSnippet(t, neighbour, "kept = 1")

	for order, want := range map[string]Ending{
		"exit":  {CauseExit, "exit code 7", 1},
		"kill":  {CauseSignal, "signal: killed", 1},
		"grow":  {CauseMemory, "out of memory: it may use", 1},
		"stall": {CauseSilent, "did not answer", 1},
		"hold":  {CauseStuck, "a snippet held a processor", 1},
		`garbage {"jsonrpc":"2.0","id":1,"result":[[[`: {},
	} {
		t.Run(strings.Fields(order)[0], func(t *testing.T) {
			box := open(t, tier, tenant("victim")).(*sandbox)
			runSnippet(t, box, "n = 41")
			box.saveNow(t)
			runSnippet(t, box, "n += 1")
			before := len(ended.list())
			_, err := box.Attack(order)
			if want.Cause == "" {
				if err != nil {
					t.Fatalf("garbage ends the worker: %v", err)
				}
				mustPrint(t, box, "print(n)", "42\n")
				return
			}
			switch {
			case order == "stall" || order == "kill":
				<-box.worker.gone // it may still have answered the snippet
			case err == nil:
				t.Fatal("the worker lives on")
			}

			r := runSnippet(t, box, "print(n)")
			if r.Stdout != "41\n" || r.Lost == nil || len(r.Lost.Snippets) != 1 || r.Lost.Snippets[0] != 2 {
				t.Errorf("the session came back with %q, %+v", r.Stdout, r.Lost)
			}
			all := ended.list()
			if len(all) != before+1 || !strings.Contains(all[before].Reason, want.Reason) ||
				all[before].Cause != want.Cause || all[before].Sessions != want.Sessions {
				t.Errorf("the endings are %+v, want one more as %+v", all, want)
			}
			if n := tier.Stats().Ended[want.Cause]; n != 1 {
				t.Errorf("%d workers ended for the cause %s", n, want.Cause)
			}
			mustPrint(t, neighbour, "print(kept)", "1\n")
			mustPrint(t, box, "n += 1; print(n)", "42\n")
		})
	}
}

// TestALossIsReportedAfterOtherUses checks that the next result reports a loss even if an export or
// a fork restored the session.
func TestALossIsReportedAfterOtherUses(t *testing.T) {
	box := open(t, openTier(t, Options{SaveAfter: time.Hour}), tiers.Config{}).(*sandbox)
	runSnippet(t, box, "n = 41")
	box.worker.end(CauseProtocol, "a test")
	<-box.worker.gone

	state, err := box.Export(t.Context())
	if err != nil || len(state.Left) != 1 || state.Left[0].Name != "*" ||
		!strings.Contains(state.Left[0].Reason, "a test") {
		t.Errorf("the state lacks %+v, %v", state.Left, err)
	}
	fork, err := box.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Close()
	for _, one := range []tiers.Sandbox{box, fork} {
		r := runSnippet(t, one, "print('n' in globals())")
		if r.Stdout != "False\n" || r.Lost == nil || len(r.Lost.Snippets) != 1 {
			t.Errorf("the session came back with %q, %+v", r.Stdout, r.Lost)
		}
		mustPrint(t, one, "print(1)", "1\n")
	}
}

// saveNow saves the session immediately, as if it had rested.
func (s *sandbox) saveNow(t *testing.T) {
	t.Helper()
	s.using.Lock()
	defer s.using.Unlock()
	if !s.saveIfNew(t.Context()) {
		t.Fatal("the session cannot be saved")
	}
}

// TestASaveThatIsBrokenOffIsMadeLater checks that a save is repeated later if the caller gave up or
// the worker ended.
func TestASaveThatIsBrokenOffIsMadeLater(t *testing.T) {
	box := open(t, openTier(t, Options{}), tiers.Config{}).(*sandbox)
	save := func(ctx context.Context) bool {
		box.using.Lock()
		defer box.using.Unlock()
		return box.saveIfNew(ctx)
	}
	runSnippet(t, box, "a = 1")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if save(gone) || box.pinned.Load() {
		t.Error("a save was made that nobody waited for, or the session is pinned")
	}
	box.saveNow(t)

	runSnippet(t, box, "a = 2")
	box.worker.end(CauseProtocol, "a test")
	<-box.worker.gone
	if save(t.Context()) || box.pinned.Load() {
		t.Error("a session was saved without its worker, or it is pinned")
	}
	if r := runSnippet(t, box, "print(a)"); r.Stdout != "1\n" || r.Lost == nil {
		t.Errorf("the session came back with %q, %+v", r.Stdout, r.Lost)
	}
	box.saveNow(t)
}

// TestTheEndOfAWorkerEndsItsSnippets checks that the running snippet is reported as crashed, and
// that the session continues.
func TestTheEndOfAWorkerEndsItsSnippets(t *testing.T) {
	tier := openTier(t, Options{})
	cfg := tiers.Config{Functions: []tiers.Function{{Name: "wait"}}}
	asked := make(chan struct{})
	cfg.Host = hostThatWaits(asked)
	box := open(t, tier, cfg).(*sandbox)
	runSnippet(t, box, "a = 'kept'")
	box.saveNow(t)

	go func() {
		<-asked
		box.worker.end(CauseProtocol, "a test")
	}()
	r := runSnippet(t, box, "b = 1\nwait()")
	if r.Status != tiers.StatusCrashed || r.Exception == nil || r.Lost == nil || r.Lost.Snippets[0] != 2 {
		t.Fatalf("%+v", r)
	}

	mustPrint(t, box, "print(a, 'b' in globals())", "kept False\n")
}

// TestSessionsThatRestMakeRoom checks more sessions than there are places.
func TestSessionsThatRestMakeRoom(t *testing.T) {
	tier := openTier(t, Options{Workers: 1, Sessions: 3})
	var all []tiers.Sandbox
	for i := range 12 {
		box := open(t, tier, tiers.Config{})
		runSnippet(t, box, "import math\nmine = "+string(rune('0'+i%10)))
		all = append(all, box)
	}
	if s := tier.Stats(); s.Workers != 1 || s.Live > 3 || s.Live+s.Saved != 12 {
		t.Errorf("%+v", s)
	}

	for i, box := range all {
		mustPrint(t, box, "print(mine, math.floor(2.5))", string(rune('0'+i%10))+" 2\n")
	}
}

// TestTenantsMakeRoomForOneAnother checks that a worker with only resting sessions is emptied for
// another tenant, which gets a fresh worker.
func TestTenantsMakeRoomForOneAnother(t *testing.T) {
	tier := openTier(t, Options{Workers: 1, Sessions: 4})
	a := open(t, tier, tenant("a")).(*sandbox)
	runSnippet(t, a, "n = 1")
	first := a.worker
	b := open(t, tier, tenant("b")).(*sandbox)
	runSnippet(t, b, "n = 2")
	if b.worker == first {
		t.Error("a worker went from one tenant to another")
	}

	mustPrint(t, a, "print(n)", "1\n")
	mustPrint(t, b, "print(n)", "2\n")
}
