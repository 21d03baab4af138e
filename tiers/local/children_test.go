//go:build unix

package local_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// box opens a sandbox that is closed at the end of the test.
func box(tb testing.TB, tier tiers.Tier, cfg tiers.Config) tiers.Sandbox {
	tb.Helper()
	b, err := tier.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// run runs a snippet that may end in any way that yields a result.
func run(tb testing.TB, b tiers.Sandbox, source string) tiers.Result {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := b.Run(ctx, tiers.Job{Source: source})
	if err != nil {
		tb.Fatalf("%v\n%s", err, source)
	}
	return r
}

func TestOutputOfChildren(t *testing.T) {
	tier := usual(t)
	for _, row := range []struct{ name, source, stdout, stderr string }{
		{"subprocess.run", "import subprocess\nprint('a')\nsubprocess.run(['echo', 'hi'])\n" +
			"print('b')", "a\nhi\nb\n", ""},
		{"the last thing", "import subprocess\nr = subprocess.run(['echo', 'hi'])", "hi\n", ""},
		{
			"stderr", "import subprocess\nr = subprocess.run(['sh', '-c', 'echo out; echo err >&2'])",
			"out\n", "err\n",
		},
		{"captured", "import subprocess\nprint(subprocess.run(['echo', 'hi'], " +
			"capture_output=True, text=True).stdout)", "hi\n\n", ""},
		{"os.system", "import os\nr = os.system('echo hi')", "hi\n", ""},
		{
			"os.write", "import os\nprint('a')\nn = os.write(1, b'raw\\n')\nprint('b')", "a\nraw\nb\n",
			"",
		},
		{"a pipeline", "import subprocess\nr = subprocess.run('seq 5 | sort -r | head -2', " +
			"shell=True)", "5\n4\n", ""},
		{
			"os.fork", "import os\nprint('before')\npid = os.fork()\nif pid == 0:\n" +
				"    print('child')\n    os._exit(0)\n_ = os.waitpid(pid, 0)\nprint('parent')",
			"before\nchild\nparent\n", "",
		},
		{"half a line before os.fork", "import os\nprint('x', end='')\npid = os.fork()\n" +
			"if pid == 0:\n    os._exit(0)\n_ = os.waitpid(pid, 0)\nprint('y')", "xy\n", ""},
		{
			"a fork that runs on", "import os\npid = os.fork()\nif pid:\n" +
				"    _ = os.waitpid(pid, 0)\nprint('parent' if pid else 'child')", "child\nparent\n",
			"",
		},
		{"a host call in a fork", "import os\npid = os.fork()\nif pid == 0:\n    try: ask(1)\n" +
			"    except Exception as e: print(e)\n    os._exit(0)\n_ = os.waitpid(pid, 0)\n" +
			"print(ask(2))", "a forked process cannot call the host\n1\n", ""},
		{"multiprocessing.Process", "import multiprocessing as m\nc = m.get_context('fork')\n" +
			"p = c.Process(target=print, args=('in a process',))\np.start(); p.join()\n" +
			"print(p.exitcode)", "in a process\n0\n", ""},
		{
			"multiprocessing.Pool", "import multiprocessing as m\n" +
				"with m.get_context('fork').Pool(3) as p: print(p.map(abs, [-1, -2, -3]))",
			"[1, 2, 3]\n", "",
		},
		{"ProcessPoolExecutor", "import concurrent.futures as f, multiprocessing as m\n" +
			"with f.ProcessPoolExecutor(2, mp_context=m.get_context('fork')) as p: " +
			"print(list(p.map(abs, [-1, -2])))", "[1, 2]\n", ""},
		{"asyncio in a fork", "import asyncio, os\npid = os.fork()\nif pid == 0:\n" +
			"    async def f(): return 5\n    print(asyncio.run(f()))\n    os._exit(0)\n" +
			"_ = os.waitpid(pid, 0)", "5\n", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			host := tiers.HostFunc(
				func(context.Context, tiers.Call) (tiers.Value, error) {
					return tiers.Value("1"),
						nil
				},
			)
			b := box(
				t,
				tier,
				tiers.Config{
					Host:      host,
					Functions: []tiers.Function{{Name: "ask"}},
					Limits:    tiers.Limits{Wall: 10 * time.Second},
				},
			)
			r := run(t, b, row.source)
			if r.Status != tiers.StatusOK || r.Stdout != row.stdout || r.Stderr != row.stderr {
				t.Errorf(
					"%s %q %q, want %q %q\n%+v", r.Status, r.Stdout, r.Stderr, row.stdout,
					row.stderr, r.Exception,
				)
			}
			if r := run(t, b, "print('alive')"); r.Stdout != "alive\n" || r.Stderr != "" {
				t.Errorf("afterwards: %s %q %q", r.Status, r.Stdout, r.Stderr)
			}
		})
	}
}

func TestFloodOfAChildIsCounted(t *testing.T) {
	b := box(t, usual(t), tiers.Config{Limits: tiers.Limits{Output: 1000}})
	r := run(t, b, "import subprocess\nr = subprocess.run(['sh', '-c', 'yes | head -c 5000000'])")
	if r.Status != tiers.StatusOK || len(r.Stdout) != 1000 || r.Usage.OutputBytes != 5_000_000 {
		t.Errorf("%s: %d bytes kept of %d", r.Status, len(r.Stdout), r.Usage.OutputBytes)
	}
}

func TestThreadsCallTheHostAtOnce(t *testing.T) {
	const threads = 20
	var here atomic.Int32
	all := make(chan struct{})
	host := tiers.HostFunc(func(ctx context.Context, c tiers.Call) (tiers.Value, error) {
		if here.Add(1) == threads {
			close(all)
		}
		select { // no call is answered before there are as many as threads
		case <-all:
			return c.Args[0], nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	b := box(t, usual(t), tiers.Config{Host: host, Functions: []tiers.Function{{Name: "ask"}}})
	r := run(
		t, b,
		"from concurrent.futures import ThreadPoolExecutor\n"+
			"with ThreadPoolExecutor(20) as p: print(sum(p.map(ask, range(100))))",
	)
	if r.Stdout != "4950\n" || r.Usage.HostCalls != 100 {
		t.Errorf("%q, %d calls\n%+v", r.Stdout, r.Usage.HostCalls, r.Exception)
	}
	r = run(
		t, b,
		"import threading\nt = [threading.Thread(target=lambda i=i: print('thread', ask(i))) for "+
			"i in range(30)]\nfor x in t: x.start()\nfor x in t: x.join()",
	)
	if n := strings.Count(r.Stdout, "thread"); n != 30 || r.Status != tiers.StatusOK {
		t.Errorf("%s: %d lines of 30\n%s", r.Status, n, r.Stdout)
	}
}
