package tiersuite

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/tiers"
)

// testCallLimit checks a snippet that makes more calls than the limit allows.
func (s *suite) testCallLimit(t *testing.T) {
	host := newHost()
	cfg := host.config()
	cfg.Limits.HostCalls = 5
	box := s.open(t, cfg)
	box.mustRun(t, harm.Marked)
	r := box.run(t, "for i in range(20):\n    ask(str(i))")
	if r.Status != tiers.StatusLimit || r.Limit != tiers.LimitHostCalls {
		t.Errorf("the limit is not named\n%s", describe(r))
	}
	if n := len(host.made()); n != 5 || r.Usage.HostCalls != 5 {
		t.Errorf("the host got %d calls, %d counted, want 5", n, r.Usage.HostCalls)
	}

	box.checkHonest(t, r)
	// Each snippet has its own count, and a refused call raises an exception.
	box.mustPrint(t, `got = []
for i in range(20):
    try:
        got.append(ask(str(i)))
    except Exception as e:
        break
print(len(got))`, "5\n")
}

// testWaitIsFree calls a host function that takes longer than the snippet's time limit.
func (s *suite) testWaitIsFree(t *testing.T) {
	const wait = 4 // times the wall limit
	ms := wait * s.opt.StopAfter.Milliseconds()
	for name, source := range map[string]string{
		"called": "slow(ms)", "awaited": "await slow(ms)",
		"gathered": "import asyncio\nawait asyncio.gather(slow(ms), slow(ms))",
	} {
		t.Run(name, func(t *testing.T) {
			if name != "called" && !s.info.Has(tiers.FeatureAsync) {
				t.Skip("the tier has no async")
			}
			cfg := newHost().config()
			cfg.Limits = s.stopLimits()
			box := s.open(t, cfg)
			box.mustRun(t, "ms = "+formatDecimal(ms))
			r := box.mustRun(t, source+"\nprint('answered')")
			waited := time.Duration(ms) * time.Millisecond
			if r.Usage.HostWait < waited-s.opt.StopAfter { // a started call runs for a moment before the wait
				t.Errorf("HostWait is %v, the host took %v", r.Usage.HostWait, waited)
			}

			if r.Usage.Active > waited/2 {
				t.Errorf("waiting is charged as work: active %v", r.Usage.Active)
			}
		})
	}
}

// testTimedCallEnds calls functions that never end and use the snippet's own time.
func (s *suite) testTimedCallEnds(t *testing.T) {
	for name, source := range map[string]string{
		"called": "hang()", "awaited": "await hang()",
		"caught": "while True:\n    try:\n        hang()\n    except Exception:\n        pass",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "awaited" && !s.info.Has(tiers.FeatureAsync) {
				t.Skip("the tier has no async")
			}
			cfg := newHost().config()
			for i := range cfg.Functions {
				cfg.Functions[i].Timed = true
			}
			cfg.Limits = s.stopLimits()
			box := s.open(t, cfg)
			r := box.run(t, source)
			if r.Status != tiers.StatusLimit || !slices.Contains(timeLimits, r.Limit) {
				t.Errorf("want a limit of %v\n%s", timeLimits, describe(r))
			}
			box.checkAlive(t)
		})
	}
}

// testWorkBehindACall computes forever while a call that never ends is under way. The work must be
// charged, whatever else is waiting.
//
// In CPython 3.11, a try statement does not catch an interrupt at the beginning of a loop.
func (s *suite) testWorkBehindACall(t *testing.T) {
	s.requireFeature(t, tiers.FeatureThreads)
	s.requireFeature(t, tiers.FeatureProcesses)
	for name, work := range map[string]string{
		"in another thread": `import threading
threading.Thread(target=hang, daemon=True).start()
while True: pass`,
		"in a child": `import os
if os.fork() == 0:
    try:
        n = 0
        while True: n += 1
    finally:
        os._exit(0)
hang()`,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newHost().config()
			cfg.Limits = s.stopLimits()
			box := s.open(t, cfg)
			box.mustRun(t, harm.Marked)
			r := box.run(t, work)
			if r.Status != tiers.StatusLimit || !slices.Contains(timeLimits, r.Limit) {
				t.Errorf("want a limit of %v\n%s", timeLimits, describe(r))
			}

			box.checkAlive(t)
			box.checkHonest(t, r)
		})
	}
}

func formatDecimal(n int64) string {
	return strconv.FormatInt(n, 10)
}

// testCancelCall cancels the wait for a call from inside and from outside the sandbox.
func (s *suite) testCancelCall(t *testing.T) {
	t.Run("by asyncio.timeout", func(t *testing.T) {
		if s.opt.PythonMinor != 0 && s.opt.PythonMinor < 11 {
			t.Skip("asyncio.timeout came with CPython 3.11")
		}
		if !s.info.Has(tiers.FeatureAsync) {
			t.Skip("the tier has no async")
		}

		host := newHost()
		box := s.open(t, host.config())
		box.mustPrint(t, `import asyncio
try:
    async with asyncio.timeout(None) as limit:
        t = asyncio.create_task(hang())
        await began()
        limit.reschedule(asyncio.get_running_loop().time() + 0.01)
        await t
except TimeoutError:
    print('timed out')`, "timed out\n")

		awaitArrival(t, host.cancelled, "the host's context did not end")
		box.checkAlive(t)
	})

	for name, source := range map[string]string{"by the caller": "hang()", "by the caller, awaited": "await hang()"} {
		t.Run(name, func(t *testing.T) {
			if name != "by the caller" && !s.info.Has(tiers.FeatureAsync) {
				t.Skip("the tier has no async")
			}
			host := newHost()
			box := s.open(t, host.config())
			ctx, cancel := context.WithCancel(s.patientContext(t))
			defer cancel()
			go func() {
				defer cancel()
				select {
				case <-host.hanging:
				case <-ctx.Done(): // the snippet has not run
				}
			}()

			_, err := box.tryJob(ctx, t, tiers.Job{Source: source})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Run returned %v, want context.Canceled", err)
			}
			awaitArrival(t, host.cancelled, "the host's context did not end")
			box.checkAlive(t)
		})
	}
}

func awaitArrival(t *testing.T, c <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(rendezvous):
		t.Fatal(otherwise)
	}
}

// testStale leaves a call unanswered at the end of a snippet. The answer must not reach the next
// snippet, and the host's function must be cancelled.
func (s *suite) testStale(t *testing.T) {
	if !s.info.Has(tiers.FeatureAsync) {
		t.Skip("the tier has no async")
	}
	host := newHost()
	box := s.open(t, host.config())
	box.mustPrint(t, `import asyncio
async def later(): return await hang()
t = asyncio.create_task(later())
await began()
print('left')`, "left\n")

	awaitArrival(t, host.cancelled, "the host's context did not end with the snippet")
	box.mustPrint(t, "print(ask('next'), await ask('and on'))", "re: next re: and on\n")
}
