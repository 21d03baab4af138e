package tiersuite

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// testLimits tests snippets that would never end, or would exhaust a resource. The result must name
// the limit, and the session must continue.
func (s *suite) testLimits(t *testing.T) {
	t.Run("Endless", s.testEndless)
	t.Run("Stubborn", s.testStubborn)
	t.Run("InC", s.testInC)
	t.Run("Sleep", s.testSleeping)
	t.Run("Memory", s.testMemory)
	t.Run("CaughtMemory", s.testCaughtMemory)
	t.Run("Output", s.testOutput)
	t.Run("Recursion", s.testRecursion)
	t.Run("Enforced", s.testEnforced)
	t.Run("Again", s.testAgain)
}

// excess is a snippet that exceeds a limit.
type excess struct{ name, source string }

var timeLimits = []tiers.Limit{tiers.LimitWall, tiers.LimitActive}

// testExcesses runs each snippet under limits that stop it. The required outcome is described at
// stopped.
func (s *suite) testExcesses(t *testing.T, l tiers.Limits, want []tiers.Limit, rows []excess,
	also func(*testing.T, tiers.Result),
) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row excess) bool {
		return strings.Contains(row.source, "await ") && !s.info.Has(tiers.FeatureAsync)
	})
	s.testEachExcess(t, l, rows, func(t *testing.T, box *session, row excess) tiers.Result {
		r := box.run(t, row.source)
		if r.Status != tiers.StatusLimit || !slices.Contains(want, r.Limit) {
			t.Errorf("want a limit of %v\n%s", want, describe(r))
		}
		box.checkAlive(t)
		box.checkHonest(t, r)
		if also != nil {
			also(t, r)
		}

		return r
	})
}

// testEndless runs endless snippets that can be interrupted, so that nothing may be lost.
func (s *suite) testEndless(t *testing.T) {
	s.testExcesses(t, s.stopLimits(), timeLimits, []excess{
		{"while True", "while True: pass"},
		{"while True after output", "print('begun')\nwhile True: pass"},
		{"an endless generator", "def g():\n    while True: yield 1\nfor _ in g(): pass"},
		{"mutual calls", "def f(n): return n\nwhile True: f(f(f(1)))"},
		{"except Exception", `while True:
    try:
        while True: pass
    except Exception:
        pass`},
		{"a loop in a coroutine", "async def f():\n    while True: pass\nawait f()"},
		{"a busy event loop", "import asyncio\nwhile True: await asyncio.sleep(0)"},
		{"a loop in a task", `import asyncio
async def f():
    while True: pass
await asyncio.gather(f(), f())`},
		{"a comprehension", "[0 for _ in iter(int, 1) if False]"},
		{"a slow __repr__", "class R:\n    def __repr__(self):\n        while True: pass\nR()"},
		{"a loop in exec", "exec('while True: pass')"},
		{"collatz without end", "n = 27\nwhile n: n = n * 3 + 1 if n % 2 and n > 1 else n // 2 or 27"},
	}, func(t *testing.T, r tiers.Result) {
		if r.Lost != nil {
			t.Errorf("an interrupt would have kept the session: %s", r.Lost.Reason)
		}
	})
}

// testStubborn runs snippets that catch the interrupt and continue.
func (s *suite) testStubborn(t *testing.T) {
	skip.Short(t, "it waits until each limit has fired")
	s.testExcesses(t, s.stopLimits(), timeLimits, []excess{
		{"a bare except", "while True:\n    try:\n        while True: pass\n    except: pass"},
		{"except BaseException", `while True:
    try:
        while True: pass
    except BaseException: continue`},
		{"except KeyboardInterrupt", `while True:
    try:
        while True: pass
    except KeyboardInterrupt: print('no')`},
		{"finally", "try:\n    while True: pass\nfinally:\n    while True: pass"},
		{"a context manager", `class C:
    def __enter__(self): pass
    def __exit__(self, *a): return True
while True:
    with C():
        while True: pass`},
		{"suppress(BaseException)", `import contextlib
while True:
    with contextlib.suppress(BaseException):
        while True: pass`},
		{"a generator that will not close", `def g():
    while True:
        try:
            while True: yield
        except BaseException: pass
x = g()
for _ in x: pass`},
		{"recursion in the handler", `def f():
    try:
        while True: pass
    except BaseException:
        f()
f()`},
		{"__del__ that never ends", `class D:
    def __del__(self):
        while True: pass
while True: D()`},
		{"a signal handler", `import signal
try:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
except Exception: pass
while True:
    try:
        while True: pass
    except BaseException: pass`},
		{"an excepthook and a trace function", `import sys
def tr(*a): return tr
sys.settrace(tr)
while True:
    try:
        while True: pass
    except BaseException: pass`},
		{"a coroutine that swallows", `import asyncio
while True:
    try:
        await asyncio.sleep(0)
    except BaseException: pass`},
	}, nil)
}

// testInC runs loops in the interpreter's C code, which does not check for interrupts.
func (s *suite) testInC(t *testing.T) {
	skip.Short(t, "it waits until each limit has fired")
	s.testExcesses(t, s.stopLimits(), timeLimits, []excess{
		{"a catastrophic regex", "import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')"},
		{"a regex over alternatives", "import re\nre.match(r'(a|a|aa)*$', 'a' * 64 + 'b')"},
		{"a big power", "3 ** (10 ** 8)"},
		{"a big product", "x = 1 << 40_000_000\ny = (x - 1) * (x - 3) * (x - 5)"},
		{"a modular power", "pow(3, 10 ** 4000, 10 ** 4000 + 7)"},
		{"sum of a range", "sum(range(10 ** 12))"},
		{"max of a repeat", "import itertools\nmax(itertools.repeat(1))"},
		{"a deque of a count", `import collections, itertools
collections.deque(itertools.count(), maxlen=0)`},
		{"all of a cycle", "import itertools\nall(itertools.cycle([1]))"},
		{"a search in an endless iterator", "import itertools\n-1 in itertools.count()"},
		{"sorting with a comparison that lies", `import functools
while True: sorted(range(10 ** 5), key=functools.cmp_to_key(lambda a, b: 1))`},
		{"counting over and over", "s = 'ab' * 5_000_000\nwhile True: s.count('ba')"},
		{"a product of long iterables", `import itertools
for x in itertools.product(range(1000), repeat=6): pass`},
		{"permutations", "import itertools\nsum(1 for _ in itertools.permutations(range(15)))"},
		{"hashing", `import hashlib
if hasattr(hashlib, 'pbkdf2_hmac'): hashlib.pbkdf2_hmac('sha256', b'', b'', 10 ** 9)
while True: hashlib.sha256(bytes(10 ** 6))`},
		{"decimal", `import decimal
decimal.getcontext().prec = 10 ** 6
decimal.Decimal(2).exp() ** decimal.Decimal('0.3')
while True: decimal.Decimal(3).sqrt()`},
		{"compressing", "import zlib\nwhile True: zlib.compress(bytes(10 ** 7), 9)"},
		{"json", "import json\nwhile True: json.loads('[' + '1,' * 500_000 + '1]')"},
		{"str of a long int", "import sys\nsys.set_int_max_str_digits(0)\nwhile True: str(1 << 3_000_000)"},
		{"difflib", `import difflib
difflib.SequenceMatcher(None, 'ab' * 20000, 'ba' * 20000, autojunk=False).ratio()`},
	}, nil)
}

// testSleeping sleeps. The time is charged to the wall limit, and can be interrupted.
func (s *suite) testSleeping(t *testing.T) {
	s.testExcesses(t, s.stopLimits(), timeLimits, []excess{
		{"time.sleep", "import time\ntime.sleep(3600)"},
		{"many short sleeps", "import time\nwhile True: time.sleep(0.001)"},
		{"time.sleep and except Exception", `import time
while True:
    try:
        time.sleep(3600)
    except Exception: pass`},
		{"asyncio.sleep", "import asyncio\nawait asyncio.sleep(3600)"},
		{"asyncio.sleep under asyncio.run", "import asyncio\nasyncio.run(asyncio.sleep(3600))"},
		{"gathered sleeps", `import asyncio
await asyncio.gather(*[asyncio.sleep(3600 + i) for i in range(100)])`},
		{"a poll", "import asyncio\nflag = []\nwhile not flag: await asyncio.sleep(0.001)"},
	}, func(t *testing.T, r tiers.Result) {
		if r.Lost != nil {
			t.Errorf("an interrupt would have kept the session: %s", r.Lost.Reason)
		}
	})

	t.Run("forever", func(t *testing.T) {
		if !s.info.Has(tiers.FeatureAsync) {
			t.Skip("the tier has no async")
		}
		// Nothing can ever end this wait, which a tier may report immediately.
		box := s.open(t, tiers.Config{Limits: s.stopLimits()})
		r := box.run(t, "import asyncio\nawait asyncio.Event().wait()")
		if r.Status != tiers.StatusLimit && r.Status != tiers.StatusRaised {
			t.Errorf("a wait without end ended well\n%s", describe(r))
		}

		box.checkAlive(t)
	})
}

var floods = []excess{
	{"one str", "x = 'a' * (1 << 30)"},
	{"one bytearray", "x = bytearray(1 << 30)"},
	{"one list", "x = [0] * (1 << 28)"},
	{"one int", "x = 1 << ((1 << 31) - 1)"},
	{"a str that doubles", "x = 'ab'\nwhile True: x += x"},
	{"a str that grows", "x = ''\nwhile True: x += 'a' * 1000000"},
	{"a list of strs", "x = []\nwhile True: x.append('y' * 1000)"},
	{"a list of bytearrays", "x = []\nwhile True: x.append(bytearray(1 << 20))"},
	{"a list of ints", "x = list(range(1 << 29))"},
	{"a dict", "x, i = {}, 0\nwhile True:\n    x[i] = str(i)\n    i += 1"},
	{"a set", "x = set(range(1 << 29))"},
	{"nested lists", "x = []\nwhile True: x = [x, x]"},
	{"nested tuples", "x = ()\nwhile True: x = (x,)"},
	{"objects in a cycle", `class N: pass
x = N()
while True:
    y = N()
    y.next, x.back = x, y
    x = y`},
	{"a comprehension", "[bytearray(100) for _ in range(1 << 30)]"},
	{"a join", "x = ','.join(['abc' * 1000] * (1 << 20))"},
	{"a format width", "x = f\"{'a':>{1 << 30}}\""},
	{"a replace", "x = ('a' * (1 << 20)).replace('a', 'b' * 2000)"},
	{"frames", `import sys
sys.setrecursionlimit(10 ** 9)
def f(*a): return f(a, *a) if len(a) < 10 else f(*a[:1], bytearray(1 << 20))
f()`},
	{"an io.BytesIO", "import io\nx = io.BytesIO()\nwhile True: x.write(bytes(1 << 20))"},
	{"a decompression bomb", "import zlib\nz = zlib.compress(bytes(1 << 20)) \nx = []\nwhile True: " +
		"x.append(zlib.decompress(z))"},
	{"itertools.tee", "import itertools\na, b = itertools.tee(itertools.count())\nfor _ in a: pass"},
}

// testMemory floods the memory. Each flood must end at the limit or, since some allocations fail
// long before the limit, in a plain MemoryError. In both cases, the session must continue.
func (s *suite) testMemory(t *testing.T) {
	skip.UnderRace(t)
	skip.Short(t, "it waits until each limit has fired")
	for _, row := range floods { // each row fragments the memory, so it has its own sandbox
		t.Run(row.name, func(t *testing.T) {
			box := s.open(t, tiers.Config{Limits: tiers.Limits{Memory: s.opt.Memory}})
			box.mustRun(t, harm.Marked)
			r := box.run(t, row.source)
			if r.Status != tiers.StatusLimit && r.Status != tiers.StatusCrashed &&
				!hasRaised(r, "MemoryError", "OverflowError", "RecursionError") {
				t.Errorf("want the memory limit\n%s", describe(r))
			}

			if r.Status == tiers.StatusLimit && r.Limit != tiers.LimitMemory {
				t.Errorf("the limit named is %q\n%s", r.Limit, describe(r))
			}
			box.checkAlive(t)
			box.checkHonest(t, r)
		})
	}

	t.Run("is named", func(t *testing.T) {
		box := s.open(t, tiers.Config{Limits: tiers.Limits{Memory: s.opt.Memory}})
		r := box.run(t, "x = []\nwhile True: x.append(bytearray(1 << 20))")
		if r.Status != tiers.StatusLimit || r.Limit != tiers.LimitMemory {
			t.Errorf("the memory limit is not named\n%s", describe(r))
		}
		if r.Usage.PeakMemory < s.opt.Memory/4 || r.Usage.PeakMemory > s.opt.Memory {
			t.Errorf("peak memory %d, limit %d", r.Usage.PeakMemory, s.opt.Memory)
		}
	})
}

func hasRaised(r tiers.Result, kinds ...string) bool {
	return r.Status == tiers.StatusRaised && r.Exception != nil && slices.Contains(kinds, r.Exception.Type)
}

// testCaughtMemory catches a MemoryError. The session must keep all of its variables and most of
// its memory.
func (s *suite) testCaughtMemory(t *testing.T) {
	skip.UnderRace(t)
	skip.Short(t, "it waits until each limit has fired")
	for _, row := range floods {
		if !strings.HasPrefix(row.name, "one ") && row.name != "a list of bytearrays" && row.name != "a list of ints" {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			box := s.open(t, tiers.Config{Limits: tiers.Limits{Memory: s.opt.Memory}})
			box.mustRun(t, harm.Marked)
			source := "def flood():\n    " + strings.ReplaceAll(row.source, "\n", "\n    ") +
				`
caught = ''
try:
    flood()
except (MemoryError, OverflowError):
    caught = 'caught'
print(caught)` // the handler still holds all of the memory

			box.mustPrint(t, source, "caught\n")
			box.mustPrint(t, "x = bytearray(10 << 20)\nprint(len(x), kept)", "10485760 {'since': 'snippet 1'}\n")
		})
	}
}

// testOutput floods stdout. The output must be kept up to the limit and counted beyond it, and the
// snippet must continue.
func (s *suite) testOutput(t *testing.T) {
	const limit = 1000
	box := s.open(t, tiers.Config{Limits: tiers.Limits{Output: limit}})
	for name, row := range map[string]struct {
		source string
		total  int64
	}{
		"a loop of prints": {"for i in range(1000): print('x' * 99)", 100_000},
		"one huge write":   {"import sys\n_ = sys.stdout.write('y' * 5_000_000)", 5_000_000},
		"stderr": {`import sys
for i in range(100): print('e' * 99, file=sys.stderr)`, 10_000},
		"both streams": {`import sys
for i in range(100): print('o' * 99); print('e' * 99, file=sys.stderr)`, 20_000},
		"an echo":                 {"'z' * 9998", 10_001},
		"text of several bytes":   {"print('é' * 9999)", 19_999},
		"exactly one byte beyond": {"print('x' * 1000)", 1001},
	} {
		t.Run(name, func(t *testing.T) {
			r := box.mustRun(t, row.source+"\n")
			kept := int64(len(r.Stdout) + len(r.Stderr))
			if kept != limit || r.Dropped != row.total-limit || r.Usage.OutputBytes != row.total {
				t.Errorf("%d kept, %d dropped, %d counted; want %d, %d, %d", kept, r.Dropped,
					r.Usage.OutputBytes, limit, row.total-limit, row.total)
			}

			if r.Limit != tiers.LimitOutput {
				t.Errorf("the limit named is %q", r.Limit)
			}
			box.checkAlive(t)
		})
	}

	t.Run("exactly the limit", func(t *testing.T) {
		r := box.mustRun(t, "print('x' * 999)")
		if r.Dropped != 0 || r.Limit != "" || len(r.Stdout) != limit {
			t.Errorf("output within the limit is reported as too much\n%s", describe(r))
		}
	})

	t.Run("a flood without end", func(t *testing.T) {
		box := s.open(t, tiers.Config{Limits: tiers.Limits{Output: limit, Wall: s.opt.StopAfter}})
		r := box.run(t, "while True: print('flood' * 100)")
		if r.Status != tiers.StatusLimit || !slices.Contains(timeLimits, r.Limit) || len(r.Stdout) > limit {
			t.Errorf("want a time limit and little output\n%s", describe(r))
		}
		box.checkAlive(t)
	})
}
