//go:build linux && (amd64 || arm64)

package workers

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/tiers"
)

// impatient returns a configuration whose limits soon end a hanging snippet, but allow other
// snippets to complete, even on a busy machine.
func impatient(tenant string) tiers.Config {
	return tiers.Config{
		Labels: map[string]string{"tenant": tenant}, Limits: tiers.Limits{Wall: 2 * time.Second},
	}
}

// keepCounting runs snippets until enough is set. Each result must be the next number. The snippets
// continue a generator, which no portable state can contain.
func keepCounting(t *testing.T, box tiers.Sandbox, enough *atomic.Bool) {
	t.Helper()
	for want := 0; !enough.Load(); want++ {
		source := "print(next(numbers))"
		if want == 0 {
			source = "import itertools\nnumbers = (i for i in itertools.count())\n" + source
		}
		r, err := box.Run(t.Context(), tiers.Job{Source: source})
		if err != nil || r.Stdout != fmt.Sprintln(want) || r.Lost != nil {
			t.Errorf("snippet %d prints %q, %+v, %+v, %v", want, r.Stdout, r.Exception, r.Lost, err)
			return
		}
	}
}

// TestASnippetThatNothingEndsCostsItsNeighboursNothing checks that busy sessions lose nothing while
// several snippets hang in their worker; one session constantly waits for its host.
func TestASnippetThatNothingEndsCostsItsNeighboursNothing(t *testing.T) {
	ended := &endings{}
	tier := openTier(t, Options{Ended: ended.add})
	var hanging []*sandbox
	for range 3 {
		hanging = append(hanging, open(t, tier, impatient("a")).(*sandbox))
	}
	var enough atomic.Bool
	var neighbours sync.WaitGroup
	var first *worker
	for i := range 8 {
		box := open(t, tier, tenant([]string{"a", "a", "a", "b"}[i%4])).(*sandbox)
		if i == 0 {
			first = box.worker
		}
		neighbours.Go(func() { keepCounting(t, box, &enough) })
	}

	asked := make(chan struct{})
	cfg := tenant("a")
	cfg.Functions, cfg.Host = []tiers.Function{{Name: "wait"}}, hostUntil(asked, &enough)
	patient := open(t, tier, cfg)
	neighbours.Go(func() {
		if r := runSnippet(t, patient, "n = wait()\nprint(n)"); r.Stdout != "7\n" || r.Lost != nil {
			t.Errorf("a snippet that waits for its host prints %q, %+v, %+v", r.Stdout, r.Exception, r.Lost)
		}
	})
	<-asked

	var hangs3 sync.WaitGroup
	for _, box := range hanging {
		hangs3.Go(func() {
			runSnippet(t, box, "n = 1")
			box.saveNow(t)
			r := runSnippet(t, box, hangs)
			if r.Status != tiers.StatusLimit || r.Limit != tiers.LimitWall || r.Lost == nil ||
				len(r.Lost.Snippets) != 1 || r.Lost.Snippets[0] != 2 {
				t.Errorf("it ends as %s %s, %+v", r.Status, r.Limit, r.Lost)
			}
			mustPrint(t, box, "print(n)", "1\n")
		})
	}
	hangs3.Wait()
	enough.Store(true)
	neighbours.Wait()
	<-first.gone

	for _, one := range ended.list() {
		if one.Cause != CauseStuck || one.Sessions != 0 {
			t.Errorf("%+v", one)
		}
	}
	after := open(t, tier, tenant("a")).(*sandbox)
	for _, box := range hanging {
		if box.worker == after.worker {
			t.Error("a session of which a snippet could not be ended has a new session beside it")
		}
	}
}

// TestASilentWorkerLosesNothingThatIsSaved stalls the worker of resting sessions.
func TestASilentWorkerLosesNothingThatIsSaved(t *testing.T) {
	ended := &endings{}
	tier := openTier(t, Options{Ended: ended.add})
	hanging := open(t, tier, tiers.Config{}).(*sandbox)
	var all []*sandbox
	for i := range 5 {
		box := open(t, tier, tiers.Config{}).(*sandbox)
		runSnippet(t, box, fmt.Sprintf("numbers = iter(range(%d, 100)); next(numbers)", i))
		box.saveNow(t)
		all = append(all, box)
	}

	r, err := hanging.Run(t.Context(), tiers.Job{
		Source: "print('begun')\nwhile True: pass",
		Stdout: writerFunc(func([]byte) {
			go func() { _, _ = all[0].Attack("stall") }() // there is no answer
		}),
	})
	if err != nil || r.Status != tiers.StatusCrashed || r.Lost == nil ||
		!strings.Contains(r.Lost.Reason, "did not answer") {
		t.Errorf("%s, %+v, %v", r.Status, r.Lost, err)
	}
	for i, box := range all {
		mustPrint(t, box, "print(next(numbers))", fmt.Sprintln(i+1))
	}
	if list := ended.list(); len(list) != 1 || list[0].Cause != CauseSilent {
		t.Errorf("%+v", list)
	}
}

// TestAnEndlessSnippetTakesTurns runs an endless snippet on the only processor. It checks that the
// snippet pauses for others, and that its pauses do not count against its time limit.
func TestAnEndlessSnippetTakesTurns(t *testing.T) {
	tier := openTier(t, Options{})
	ctx := slots.New(1, 100).With(t.Context())
	endless := open(t, tier, tiers.Config{Limits: tiers.Limits{Wall: time.Second}})
	begun, over := make(chan struct{}), make(chan tiers.Result, 1)
	go func() {
		defer close(over)
		r, err := endless.Run(ctx, tiers.Job{
			Source: "print('begun')\nwhile True: pass", Stdout: writerFunc(func([]byte) { close(begun) }),
		})
		if err != nil {
			t.Error(err)
		}
		over <- r
	}()
	<-begun

	other := open(t, tier, tiers.Config{})
	for range 20 {
		r, err := other.Run(ctx, tiers.Job{Source: "print(1)"})
		if err != nil || r.Stdout != "1\n" {
			t.Fatalf("%q, %v", r.Stdout, err)
		}
	}
	r := <-over
	if r.Limit != tiers.LimitWall || r.Usage.Queued == 0 {
		t.Errorf("it ends at the limit %q and has waited %s", r.Limit, r.Usage.Queued)
	}
}
