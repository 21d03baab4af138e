//go:build amd64 || arm64

package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// tapedConfig returns the configuration of a session whose host answers each "ask" differently, and
// later calls sooner. It counts the calls in asked.
func tapedConfig(asked *atomic.Int64) tiers.Config {
	return tiers.Config{
		Functions: []tiers.Function{{Name: "ask"}},
		Host: tiers.HostFunc(func(ctx context.Context, call tiers.Call) (tiers.Value, error) {
			n := asked.Add(1)
			select {
			case <-time.After(time.Duration(10-min(n, 9)) * 3 * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if string(call.Args[0]) == `"fail"` {
				return nil, errors.New("it failed")
			}
			what := strings.Trim(string(call.Args[0]), `"`)
			return fmt.Appendf(nil, `"%s %d %d"`, what, n, time.Now().UnixNano()), nil
		}),
	}
}

var tapedSnippets = map[string]struct{ setUp, source, show string }{
	"time": {
		"import time",
		"a = time.time(); b = time.perf_counter(); c = time.monotonic_ns(); time.sleep(0.01); d = time.time()\n" +
			"import datetime; e = datetime.datetime.now()\nprint(d - a)", "print(a, b, c, d, e)",
	},
	"randomness": {
		"import random; first = random.random()",
		"import os, uuid, secrets\nx = [random.random(), uuid.uuid4(), os.urandom(8), secrets.token_hex(), " +
			"random.Random().random()]\nrandom.seed(); x.append(random.random()); print(x)",
		"print(x, random.random())",
	},
	"the first randomness": {
		"x = 1", "import random, uuid; x = random.random(), uuid.uuid4()", "print(x, random.random())",
	},
	"host calls": {
		"seen = []",
		"for i in range(3): seen.append(ask(f'q{i}'))\n" +
			"try: ask('fail')\nexcept Exception as e: seen.append(str(e))\nprint(len(seen))", "print(seen)",
	},
	"equal calls in gather": {
		"import asyncio; order = []",
		"async def one(i):\n    order.append((i, await asyncio.to_thread(ask, 'same')))\n" +
			"async def main():\n    await asyncio.gather(*[one(i) for i in range(5)])\nasyncio.run(main())",
		"print(order)",
	},
	"a timeout": {
		"import asyncio, time",
		"async def main():\n    try:\n        return await asyncio.wait_for(asyncio.to_thread(ask, 'slow'), 0.001)\n" +
			"    except TimeoutError:\n        return time.time()\nwhen = asyncio.run(main())", "print(when)",
	},
	"threads": {
		"import threading, queue, time; done = []",
		"def work(i):\n    for _ in range(3):\n        done.append((i, ask(f't{i}'), time.time()))\n" +
			"        time.sleep(0.001 * (4 - i))\nts = [threading.Thread(target=work, args=(i,)) for i in range(4)]\n" +
			"for t in ts: t.start()\nfor t in ts: t.join()", "print(done)",
	},
	"an exception": {
		"import time; x = 1", "x = time.time()\nprint(x)\nraise ValueError(x)", "print(x)",
	},
	"a pool": {
		"from concurrent.futures import ThreadPoolExecutor, as_completed; got = []",
		"with ThreadPoolExecutor(3) as pool:\n    for f in as_completed([pool.submit(ask, i) for i in range(6)]):\n" +
			"        got.append(f.result())", "print(got)",
	},
}

// tapedStates are the ways to the state before the snippet.
var tapedStates = map[string]func(*sandbox, context.Context) (tiers.State, error){
	"pages":     (*sandbox).ExportExact,
	"variables": (*sandbox).Export,
}

// TestATapedSnippetRunsAgain repeats snippets in another guest, and checks that its host receives
// no calls.
func TestATapedSnippetRunsAgain(t *testing.T) {
	e := readyEngine(t)
	for name, c := range tapedSnippets {
		for kind, export := range tapedStates {
			t.Run(name+"/"+kind, func(t *testing.T) {
				var asked atomic.Int64
				first := opened(t, e, tapedConfig(&asked))
				mustRun(t, first, nil, c.setUp)
				state, err := export(first, t.Context())
				if err != nil {
					t.Fatal(err)
				}

				tape := session.NewTape()
				ran := mustRun(t, first, tape, c.source)
				content, err := tape.Encode()
				if err != nil {
					t.Fatal(err)
				}
				shown := mustRun(t, first, nil, c.show)
				calls := asked.Load()

				second := opened(t, e, tapedConfig(&asked))
				if report, err := second.Import(t.Context(), state); err != nil || len(report.Left) > 0 {
					t.Fatal(err, report)
				}
				again, err := session.ReadTape(content)
				if err != nil {
					t.Fatal(err)
				}
				repeated := mustRun(t, second, again, c.source)
				if repeated.Stdout != ran.Stdout || repeated.Status != ran.Status || again.Strayed() != "" {
					t.Errorf("%q (%s), want %q (%s); %s", repeated.Stdout, repeated.Status, ran.Stdout, ran.Status,
						again.Strayed())
				}
				if got := mustRun(t, second, nil, c.show); got.Stdout != shown.Stdout || got.Stdout == "" {
					t.Errorf("%q, want %q: %+v", got.Stdout, shown.Stdout, got.Exception)
				}
				if now := asked.Load(); now != calls {
					t.Errorf("the host was asked %d times, want %d", now, calls)
				}
			})
		}
	}
}

func mustRun(t *testing.T, box *sandbox, tape *session.Tape, source string) tiers.Result {
	t.Helper()
	result, err := box.Run(tape.With(t.Context()), tiers.Job{Source: source})
	if err != nil || result.Status != tiers.StatusOK && result.Exception.Type != "ValueError" {
		t.Fatal(err, result.Exception)
	}
	return result
}

// TestATapeNoticesAnotherSnippet checks that the repetition of a snippet in a guest with another
// state is detected.
func TestATapeNoticesAnotherSnippet(t *testing.T) {
	e := readyEngine(t)
	for name, c := range map[string]struct{ source, want string }{
		"one more reading": {"import time\nfor _ in range(2 + more): time.time()", "it read a clock more often"},
		"one less reading": {"import time\nfor _ in range(2 - more): time.time()", "it asked its host for less"},
		"another call":     {"x = ask(str(more))", "it asked its host for something else"},
		"one more call":    {"for _ in range(1 + more): ask('x')", "it asked its host for something else"},
		"one less call":    {"for _ in range(1 - more): ask('x')", "it asked its host for less"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			box := opened(t, e, tapedConfig(&asked))
			mustRun(t, box, nil, "more = 0")
			tape := session.NewTape()
			mustRun(t, box, tape, c.source)
			content, err := tape.Encode()
			if err != nil {
				t.Fatal(err)
			}

			calls := asked.Load()
			again, err := session.ReadTape(content)
			if err != nil {
				t.Fatal(err)
			}
			mustRun(t, box, nil, "more = 1")
			if _, err := box.Run(again.With(t.Context()), tiers.Job{Source: c.source}); err != nil {
				t.Fatal(err)
			}
			if got := again.Strayed(); got != c.want || asked.Load() != calls {
				t.Errorf("%q, want %q; %d calls", got, c.want, asked.Load()-calls)
			}
		})
	}
}

// TestSomeSnippetsAreNotTaped checks snippets whose tape gives the reason why they cannot run
// again.
func TestSomeSnippetsAreNotTaped(t *testing.T) {
	e := readyEngine(t)
	for name, c := range map[string]struct {
		e            *engine
		cfg          tiers.Config
		source, want string
	}{
		"many readings": {
			e,
			tiers.Config{},
			"import time\nfor _ in range(200_000): time.perf_counter()",
			"it got more than 256 KiB from its host",
		},
		"a deterministic session": {e, tiers.Config{Deterministic: true}, "1", "tier wasm cannot repeat a snippet"},
		"wazero": {
			readyEngineWith(t, engineWazero), tiers.Config{}, "1", "tier wasm cannot repeat a snippet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tape := session.NewTape()
			mustRun(t, opened(t, c.e, c.cfg), tape, c.source)
			if got := tape.Why(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestARepetitionNeverAsksTheHost gives a tape to guests that cannot use it, and checks that they
// do not call the host.
func TestARepetitionNeverAsksTheHost(t *testing.T) {
	var asked atomic.Int64
	tape := session.NewTape()
	mustRun(t, opened(t, readyEngine(t), tapedConfig(&asked)), tape, "ask('x')")
	content, err := tape.Encode()
	if err != nil {
		t.Fatal(err)
	}
	fixed := tapedConfig(&asked)
	fixed.Deterministic = true
	calls := asked.Load()

	for name, box := range map[string]*sandbox{
		"wazero":                  opened(t, readyEngineWith(t, engineWazero), tapedConfig(&asked)),
		"a deterministic session": opened(t, readyEngine(t), fixed),
	} {
		t.Run(name, func(t *testing.T) {
			again, err := session.ReadTape(content)
			if err != nil {
				t.Fatal(err)
			}
			_, err = box.Run(again.With(t.Context()), tiers.Job{Source: "ask('x')"})
			var refused *tiers.RejectedError
			if !errors.As(err, &refused) || asked.Load() != calls {
				t.Errorf("%v; the host was asked %d times", err, asked.Load()-calls)
			}
		})
	}
}
