package wasm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// threadPrelude prepares the sessions of the tests below.
const threadPrelude = `import os, queue, threading, time
from concurrent.futures import ThreadPoolExecutor
q, never = queue.Queue(), threading.Event()
def run(*targets, daemon=None):
    ts = [threading.Thread(target=t, daemon=daemon) for t in targets]
    for t in ts: t.start()
    for t in ts: t.join()
`

// TestThreadsOfASnippet runs snippets whose threads misbehave. It checks that each ends with a
// status and a reason, and that the session continues with one thread.
func TestThreadsOfASnippet(t *testing.T) {
	tier := warmTier(t)
	host := tiers.HostFunc(func(_ context.Context, call tiers.Call) (tiers.Value, error) {
		return call.Args[0], nil
	})

	for name, row := range map[string]struct {
		source string
		status tiers.Status
		says   string // in the output or in the exception
		active time.Duration
	}{
		"that the snippet does not join": {
			"out = []\nfor i in range(3): threading.Thread(target=lambda i=i: " +
				"out.append(ask(i))).start()", tiers.StatusOK, "", 0,
		},
		"that wait for each other": {
			"a, b = threading.Lock(), threading.Lock()\na.acquire(); b.acquire()\n" +
				"run(a.acquire, b.acquire)", tiers.StatusRaised, "deadlock: every thread waits", 0,
		},
		"that wait for nothing": {
			"run(never.wait)", tiers.StatusRaised, "deadlock: every thread waits", 0,
		},
		"daemons that are left": {
			"threading.Thread(target=q.get, daemon=True).start()\nprint('left')", tiers.StatusOK, "left", 0,
		},
		"that end with the snippet": {
			"def f():\n    try: q.get()\n    finally: print('cleaned up')\nthreading.Thread(target=f).start()",
			tiers.StatusOK, "cleaned up", 0,
		},
		"that refuse to end": {
			"def f():\n    while True:\n        try: q.get()\n        except BaseException: pass\n" +
				"threading.Thread(target=f, daemon=True).start()\nprint('left')", tiers.StatusOK, "left", 0,
		},
		"that compute without end": {
			"def f():\n    while True: pass\nrun(f)", tiers.StatusLimit, "KeyboardInterrupt",
			300 * time.Millisecond,
		},
		"that catch every interrupt": {
			"def f():\n    while True:\n        try:\n            while True: pass\n" +
				"        except BaseException: pass\nrun(f)", tiers.StatusLimit, "",
			300 * time.Millisecond,
		},
		"that exit": {"run(lambda: os._exit(3))", tiers.StatusCrashed, "exit code 3", 0},
		"that raise": {
			"def f(): ask(1); 1/0\nrun(f)\nprint('on')", tiers.StatusOK, "ZeroDivisionError: division by zero", 0,
		},
		"that give the answer": {"run(lambda: FINAL('x'))\nprint('on')", tiers.StatusOK, "on\n", 0},
		"that recurse": {
			"def f(n):\n    return f(n + 1)\ntry: ThreadPoolExecutor().submit(f, 0).result()\n" +
				"except RecursionError as e: print(e)", tiers.StatusOK, "maximum recursion depth exceeded", 0,
		},
		"that recurse in C": {
			"x = []\nfor _ in range(50_000): x = [x]\n" +
				"def f():\n    try: repr(x)\n    except RecursionError as e: print(e)\nrun(f)",
			tiers.StatusOK, "maximum recursion depth exceeded", 0,
		},
		"that are too many": {
			"go = threading.Event()\ntry:\n    for n in range(1000): threading.Thread(target=go.wait).start()\n" +
				"except RuntimeError as e: print(e, n)\nfinally: go.set()",
			tiers.StatusOK, "can't start new thread 256\n", 0,
		},
		"that are too deep together": {
			"import itertools\nx = map(ask, itertools.repeat(1))\nfor _ in range(30_000): x = filter(None, x)\n" +
				"run(*[lambda: next(x)] * 100)", tiers.StatusCrashed, "too deep", 0,
		},
		"with a timeout": {
			"try: ThreadPoolExecutor().submit(q.get, timeout=0.05).result(timeout=0.01)\n" +
				"except TimeoutError: print('over')", tiers.StatusOK, "over", 0,
		},
		"whose initializer fails": {
			"try: ThreadPoolExecutor(initializer=lambda: 1/0).submit(print).result()\n" +
				"except Exception as e: print(repr(e))", tiers.StatusOK, "BrokenThreadPool", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSandbox(t, tier, tiers.Config{
				Limits: tiers.Limits{Active: row.active},
				Host:   host, Functions: []tiers.Function{{Name: "ask"}},
			})
			runOK(t, s, threadPrelude)
			r, err := s.Run(t.Context(), tiers.Job{Source: row.source})
			if err != nil {
				t.Fatal(err)
			}

			said := r.Stdout + r.Stderr
			if r.Exception != nil {
				said += r.Exception.Type + ": " + r.Exception.Message
			}
			if r.Status != row.status || !strings.Contains(said, row.says) {
				t.Errorf("%s %q, want %s with %q", r.Status, said, row.status, row.says)
			}
			runOK(t, s, "import threading; assert threading.active_count() == 1, threading.enumerate()")
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestThreadsOutliveNoSnippet checks a snippet that uses objects left by threads of earlier
// snippets.
func TestThreadsOutliveNoSnippet(t *testing.T) {
	s := openSandbox(t, warmTier(t), tiers.Config{})
	for _, source := range []string{
		threadPrelude,
		"out = []\nthreading.Thread(target=lambda: (time.sleep(0.01), out.append(1))).start()",
		"assert out == [1]",
		"pool = ThreadPoolExecutor(2)\nfuture = pool.submit(lambda: time.sleep(0.01) or 5)",
		"assert future.result(timeout=0) == 5 and pool.submit(len, 'ab').result() == 2",
		"local = threading.local()\nlocal.x = 1\nrun(lambda: setattr(local, 'x', 2))",
		"assert local.x == 1 and threading.current_thread() is threading.main_thread()",
		"idents = []\nrun(*[lambda: (time.sleep(0), idents.append(threading.get_ident()))] * 5)",
		"assert len({threading.get_ident(), *idents}) == 6",
		"lock = threading.RLock()\nlock.acquire()\nrun(lambda: out.append(lock.acquire(timeout=0.01)))",
		"assert out[-1] is False and lock._is_owned()",
	} {
		runOK(t, s, source)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
