package wasm_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/mapbudget"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// takeAllMaps uses up the rest of the process's budget of memory maps, until the returned function
// is called. No other test may run in parallel.
func takeAllMaps() (giveBack func()) {
	budget, taken := mapbudget.Process(), 0
	for budget.Take(1) == nil {
		taken++
	}
	return func() { budget.Give(taken) }
}

// waitFor returns a host whose function signals that it waits, and then waits.
func waitFor(waiting chan<- struct{}, goOn <-chan struct{}) tiers.Host {
	return tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
		waiting <- struct{}{}
		<-goOn
		return nil, nil
	})
}

// startMany is a snippet that starts threads that wait, and prints the number of threads.
const startMany = `import threading
go, started = threading.Event(), []
try:
    for _ in range(200):
        t = threading.Thread(target=go.wait)
        t.start()
        started.append(t)
except RuntimeError as e: print(e)
go.set()
for t in started: t.join()
print(len(started), threading.active_count())
`

// TestAThreadThatCannotStartIsAnException starts threads in a process that cannot have more memory
// maps, and checks that the sandbox and the process survive.
func TestAThreadThatCannotStartIsAnException(t *testing.T) {
	tier := warmTierOf(t, "aot")
	s := openSandbox(t, tier, tiers.Config{})
	defer s.Close()
	giveBack := takeAllMaps()
	for range 3 { // threads that have not begun are reused
		r, err := s.Run(t.Context(), tiers.Job{Source: startMany})
		if err != nil || r.Status != tiers.StatusOK || !strings.HasPrefix(r.Stdout, "can't start new thread\n") ||
			!strings.HasSuffix(r.Stdout, " 1\n") {
			t.Errorf("%s %q %+v, %v", r.Status, r.Stdout, r.Exception, err)
		}
	}

	giveBack()
	r, err := s.Run(t.Context(), tiers.Job{Source: startMany})
	if err != nil || r.Stdout != "200 1\n" {
		t.Errorf("with maps: %s %q %+v, %v", r.Status, r.Stdout, r.Exception, err)
	}
}

// TestASandboxIsRefusedBeforeTheKernelRefuses keeps opening sandboxes in a process that is running
// out of memory maps. It checks that the refusal names the limit, and that the open sandboxes keep
// running.
func TestASandboxIsRefusedBeforeTheKernelRefuses(t *testing.T) {
	for _, engine := range []string{"aot", "wazero"} {
		t.Run(engine, func(t *testing.T) {
			tier := warmTierOf(t, engine)
			defer takeAllMaps()()

			var open []tiers.Sandbox
			var refusal error
			for range 300 {
				s, err := tier.Open(t.Context(), tiers.Config{})
				if err != nil {
					refusal = err
					break
				}
				open = append(open, s)
			}
			if refusal == nil || !strings.Contains(refusal.Error(), "raise vm.max_map_count") {
				t.Errorf("after %d sandboxes: %v", len(open), refusal)
			}
			for _, s := range open {
				runOK(t, s, "print(sum(range(100)))")
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestManySandboxesWithManyThreads checks that 200 sandboxes with 64 threads each fit in the
// kernel's usual limit of memory maps.
func TestManySandboxesWithManyThreads(t *testing.T) {
	skip.Short(t, "it starts 12,800 threads")
	const sandboxes, threads = 200, 64
	if mapbudget.Process().Limit() < 60_000 {
		t.Skip("vm.max_map_count is below its usual value")
	}
	tier := warmTierOf(t, "aot")
	source := fmt.Sprintf("import threading, time\n"+
		"ts = [threading.Thread(target=time.sleep, args=(3,)) for _ in range(%d)]\n"+
		"for t in ts: t.start()\nwait()\nfor t in ts: t.join()\n", threads)

	waiting, goOn := make(chan struct{}, sandboxes), make(chan struct{})
	ended := make(chan error, sandboxes)
	for range sandboxes {
		s := openSandbox(t, tier, tiers.Config{
			Host: waitFor(waiting, goOn), Functions: []tiers.Function{{Name: "wait"}},
		})
		go func() {
			r, err := s.Run(t.Context(), tiers.Job{Source: source})
			if err == nil && r.Status != tiers.StatusOK {
				err = fmt.Errorf("%s %+v", r.Status, r.Exception)
			}
			if closeErr := s.Close(); err == nil {
				err = closeErr
			}
			ended <- err
		}()
	}
	for range sandboxes {
		<-waiting
	}

	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(maps, []byte("\n")); n > 2*sandboxes*(threads+1)+10*sandboxes {
		t.Errorf("the process has %d memory maps", n)
	}
	s := openSandbox(t, tier, tiers.Config{})
	runOK(t, s, "x = bytearray(20 << 20)")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	close(goOn)
	for range sandboxes {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
