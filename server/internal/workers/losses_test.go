//go:build linux && (amd64 || arm64)

package workers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/tiers"
)

// kill ends the worker of a session as the kernel would.
func kill(t *testing.T, box *sandbox) {
	t.Helper()
	box.using.Lock() // a save may still run
	w := box.worker
	box.using.Unlock()
	_, _ = box.Attack("kill") // there is no answer
	<-w.gone
}

// TestABusySessionLosesFewSnippets checks how many snippets a session that never rests loses with
// its worker.
func TestABusySessionLosesFewSnippets(t *testing.T) {
	box := open(t, openTier(t, Options{SaveAfter: time.Hour}), tiers.Config{}).(*sandbox)
	ran, kept := 0, 0
	for kept < 3*saveSnippets || ran == kept { // until some snippets are saved and some are not
		ran++
		mustPrint(t, box, "n = globals().get('n', 0) + 1; print(n)", fmt.Sprintln(ran))
		box.using.Lock()
		kept = box.covered
		box.using.Unlock()
		if ran-kept >= saveSnippets {
			t.Fatalf("%d snippets have run, and %d are saved", ran, kept)
		}
	}
	kill(t, box)

	r := runSnippet(t, box, "print(n)")
	if r.Stdout != fmt.Sprintln(kept) || r.Lost == nil || len(r.Lost.Snippets) != ran-kept ||
		r.Lost.Snippets[0] != kept+1 {
		t.Errorf("the session goes on with n = %s after %d snippets, lost %+v", r.Stdout, ran, r.Lost)
	}
	mustPrint(t, box, "print(n)", r.Stdout)
	kill(t, box)
	if r := runSnippet(t, box, "print(n)"); r.Lost == nil || len(r.Lost.Snippets) != 2 || r.Lost.Snippets[0] != ran+1 {
		t.Errorf("the second loss is %+v", r.Lost)
	}
}

// TestALossIsSaidAfterErrors checks that errors while no worker can start say that the snippet
// never ran, and that the next result still reports the loss.
func TestALossIsSaidAfterErrors(t *testing.T) {
	tier := openTier(t, Options{SaveAfter: time.Hour})
	box := open(t, tier, tenant("a")).(*sandbox)
	runSnippet(t, box, "n = 1")
	p := box.pool
	p.patience = 100 * time.Millisecond
	kill(t, box)
	p.mu.Lock()
	p.backoffs["a"].notUntil = time.Now().Add(time.Hour)
	if why, wait := p.obstacle("b"); wait > 0 {
		t.Errorf("another tenant waits for %s: %s", wait, why)
	}
	p.mu.Unlock()

	_, err := box.Run(t.Context(), tiers.Job{Source: "print(1)"})
	var broken *tiers.BrokenError
	const why = "1 workers of this tenant have ended soon after their start, the last one: signal: killed"
	if !errors.As(err, &broken) || broken.Effects != tiers.EffectsNeverRan || !errors.Is(err, slots.ErrBusy) ||
		!strings.Contains(err.Error(), why) {
		t.Errorf("the error is %v", err)
	}
	p.mu.Lock()
	p.backoffs["a"].notUntil = time.Now()
	p.mu.Unlock()
	p.patience = admitWithin
	if r := runSnippet(t, box, "print('n' in globals())"); r.Stdout != "False\n" || r.Lost == nil ||
		len(r.Lost.Snippets) != 1 || !strings.Contains(r.Lost.Reason, "signal: killed") {
		t.Errorf("%q, lost %+v", r.Stdout, r.Lost)
	}
	mustPrint(t, box, "print(1)", "1\n")
}

// TestASessionGoesBackToPagesAndGetsWhatCameLater checks that a restored session also has the
// inputs and functions that were added since the save.
func TestASessionGoesBackToPagesAndGetsWhatCameLater(t *testing.T) {
	box := open(t, openTier(t, Options{SaveAfter: time.Hour}), tiers.Config{Out: true}).(*sandbox)
	runSnippet(t, box, "numbers = iter('abc'); next(numbers); open('/out/f', 'w').write('x')")
	box.saveNow(t)
	if box.saved.pages == nil {
		t.Fatal("the session has no pages")
	}
	err := box.Extend(t.Context(), []tiers.Input{{Name: "more", Variable: "more", Value: tiers.Value("[5]")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	fork, err := box.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Close()

	for range 2 {
		kill(t, box)
		mustPrint(t, box, "print(next(numbers), more, open('/out/f').read())", "b [5] x\n")
		mustPrint(t, fork, "print(next(numbers), more)", "b [5]\n")
		for _, one := range []*sandbox{box, fork.(*sandbox)} {
			runSnippet(t, one, "numbers = iter('abc'); next(numbers)")
			one.saveNow(t)
		}
	}
}

// TestALossNamesValuesThatNoStateHas checks that the loss names a generator, which a state without
// pages cannot contain.
func TestALossNamesValuesThatNoStateHas(t *testing.T) {
	box := open(t, openTier(t, Options{SaveAfter: time.Hour}), tiers.Config{}).(*sandbox)
	runSnippet(t, box, "n = 1; g = (i for i in 'ab')")
	box.using.Lock()
	kept, err := box.saveVariables(t.Context())
	if err == nil {
		box.keep(kept)
	}
	box.using.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	kill(t, box)

	r := runSnippet(t, box, "print(n)")
	if r.Stdout != "1\n" || r.Lost == nil || len(r.Lost.Snippets) != 0 || !strings.Contains(r.Lost.Reason, "lacks g") {
		t.Errorf("%q, lost %+v", r.Stdout, r.Lost)
	}
	mustPrint(t, box, "print(n)", "1\n")
}
