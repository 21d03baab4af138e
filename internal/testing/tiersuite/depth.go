package tiersuite

import (
	"slices"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// deep snippets recurse in Python or in the interpreter's C code.
var deep = []excess{
	{"calls", "def f(n): return f(n + 1)\nf(0)"},
	{"calls without a recursion limit", `import sys
sys.setrecursionlimit(10 ** 9)
def f(n): return f(n + 1)
f(0)`},
	{"caught and again", "def f():\n    try:\n        f()\n    except RecursionError:\n        f()\nf()"},
	{"repr of nested lists", "x = []\nfor _ in range(100000): x = [x]\nrepr(x)"},
	{"an echo of nested lists", "x = []\nfor _ in range(100000): x = [x]\nx"},
	{"comparison of nested lists", `def nest():
    x = []
    for _ in range(100000): x = [x]
    return x
nest() == nest()`},
	{"hash of nested tuples", "x = ()\nfor _ in range(100000): x = (x,)\nhash(x)"},
	{"freeing nested tuples", "x = ()\nfor _ in range(1000000): x = (x,)\ndel x"},
	{"json.dumps of nested lists", "import json\nx = []\nfor _ in range(100000): x = [x]\njson.dumps(x)"},
	{"json.loads of brackets", "import json\njson.loads('[' * 100000 + ']' * 100000)"},
	{"compiling parentheses", "compile('(' * 10000 + ')' * 10000, 'x', 'eval')"},
	{"compiling a long sum", "compile('1' + '+1' * 100000, 'x', 'eval')"},
	{"compiling unary operators", "compile('-' * 100000 + '1', 'x', 'eval')"},
	{"compiling attributes", "compile('a' + '.b' * 100000, 'x', 'eval')"},
	{"compiling nested functions", "compile('\\n'.join(' ' * i + f'def f{i}():' for i in range(99)) + " +
		"'\\n' + ' ' * 99 + 'pass', 'x', 'exec')"},
	{"compiling nested lists", "eval('[' * 190 + ']' * 190)"},
	{"ast.literal_eval", "import ast\nast.literal_eval('(' * 5000 + '1' + ')' * 5000)"},
	{"ast nodes", `import ast
n = ast.Constant(1)
for _ in range(100000): n = ast.UnaryOp(ast.USub(), n)
compile(ast.fix_missing_locations(ast.Expression(n)), 'x', 'eval')`},
	{"a regex of groups", "import re\nre.compile('(' * 5000 + ')' * 5000)"},
	{"a regex that recurses", "import re\nre.match('(a|b)*c', 'ab' * 1000000)"},
	{"deepcopy", "import copy\nx = []\nfor _ in range(100000): x = [x]\ncopy.deepcopy(x)"},
	{"pickle", "import pickle\nx = []\nfor _ in range(100000): x = [x]\npickle.dumps(x)"},
	{"unpickling", "import pickle\npickle.loads(b'(' * 1000000 + b't' * 1000000 + b'.')"},
	{"__getattr__", "class A:\n    def __getattr__(self, n): return getattr(self, n + 'x')\nA().y"},
	{"__repr__", "class A:\n    def __repr__(self): return repr(self)\nA()"},
	{"__eq__", "class A:\n    def __eq__(self, o): return self == o\nA() == 1"},
	{"__add__", "class A:\n    def __add__(self, o): return self + o\nA() + 1"},
	{"__call__ of a __call__", "class A: pass\na = A()\nA.__call__ = a\na()"},
	{"a sort key that sorts", "def f(v): return sorted([1, 2], key=f)\nf(0)"},
	{"a map in a map", "def f(v): return list(map(f, [v]))\nf(0)"},
	{"a million nested iterators", "g = iter([1])\nfor _ in range(1000000): g = map(int, g)\nnext(g)"},
	{"a million nested chains", `import itertools
g = iter([1])
for _ in range(1000000): g = itertools.chain(g, ())
next(g)`},
	{"a million nested generators", `def w(g): yield from g
g = iter([1])
for _ in range(1000000): g = w(g)
next(g)`},
	{"nested filters, freed", "g = iter([1])\nfor _ in range(1000000): g = filter(None, g)\ndel g"},
	{"nested partials", `import functools
f = int
for _ in range(100000): f = functools.partial(f)
f.__wrapped__ = f
f()`},
	{"nested partials' repr", `import functools
f = functools.partial(int)
for i in range(100000): f = functools.partial(print, f)
repr(f)`},
	{"exceptions chained deep", `e = None
for i in range(100000):
    n = ValueError(i)
    n.__cause__ = e
    e = n
raise e`},
	{"exception groups nested deep", `e = ValueError()
for i in range(10000): e = ExceptionGroup('g', [e])
raise e`},
	{"a class hierarchy", "C = object\nfor i in range(2000): C = type('C', (C,), {})\nC().x = 1"},
	{"a type of many bases", "cs = [type(f'C{i}', (), {}) for i in range(3000)]\ntype('D', tuple(cs), {})"},
	{"isinstance of nested tuples", "t = int\nfor _ in range(100000): t = (t,)\nisinstance('', t)"},
	{"nested exec", "s = 'exec(s)'\nexec(s)"},
	{"nested eval of reprs", "x = ''\nfor _ in range(20): x = repr(x)\nlen(x)"},
	{"xml", "import xml.etree.ElementTree as ET\nET.fromstring('<a>' * 100000 + '</a>' * 100000)"},
	{"xml entities", `import xml.etree.ElementTree as ET
e = ''.join(f'<!ENTITY a{i} "' + f'&a{i-1};' * 10 + '">' for i in range(1, 12))
d = '<!DOCTYPE r [<!ENTITY a0 "x">' + e + ']><r>&a11;</r>'
len(ET.fromstring(d).text)`},
	{"async generators", "async def f(n):\n    return await f(n + 1)\nawait f(0)"},
	{"tasks that make tasks", `import asyncio
async def f(n):
    if n: await asyncio.create_task(f(n - 1))
await f(20000)`},
}

// testRecursion runs deep recursions. Each may succeed, or end in an exception, at a limit, or in a
// reported crash of the interpreter. The session must continue.
func (s *suite) testRecursion(t *testing.T) {
	skip.UnderRace(t)
	skip.Short(t, "it fills the stack in each way there is")
	l := tiers.Limits{Wall: max(3*time.Second, 3*s.opt.StopAfter), Memory: 4 * s.opt.Memory}
	s.testEachExcess(t, l, deep, s.checkSurvival)
}

// testSurvival runs each snippet in a separate sandbox. If another tier runs the attacks on the
// same process, the snippet runs in the sandbox that survived the previous snippets.
func (s *suite) testSurvival(t *testing.T, l tiers.Limits, rows []excess) {
	if s.opt.KnownProcess {
		s.runParallel(t) // in parallel with the other groups
		s.testEachExcess(t, l, rows, s.checkSurvival)
		return
	}

	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s.runParallel(t) // most cases wait for a limit
			box := s.open(t, tiers.Config{Limits: l})
			box.mustRun(t, harm.Marked)
			s.checkSurvival(t, box, row)
		})
	}
}

// checkSurvival runs a snippet and requires only that the session is alive and reports its state
// correctly. The snippet may end in any way.
func (s *suite) checkSurvival(t *testing.T, box *session, row excess) tiers.Result {
	r := box.run(t, row.source)
	t.Logf("%s %s", r.Status, r.Limit)
	box.checkAlive(t)
	box.checkHonest(t, r)
	return r
}

// testEnforced checks that a result reports how its limits are enforced.
func (s *suite) testEnforced(t *testing.T) {
	box := s.open(t, tiers.Config{Limits: tiers.Limits{Output: 12345}})
	r := box.mustRun(t, "pass")
	want := []tiers.Limit{tiers.LimitWall, tiers.LimitMemory, tiers.LimitOutput, tiers.LimitHostCalls}
	for _, e := range r.Enforced {
		want = slices.DeleteFunc(want, func(l tiers.Limit) bool { return l == e.Limit })
		if e.Value == "" || e.Mechanism == "" {
			t.Errorf("limit %q has no value or no mechanism: %+v", e.Limit, e)
		}
	}

	if len(want) > 0 {
		t.Errorf("the result does not say how %v is kept", want)
	}
}

// testAgain exceeds limits many times in one session. After each stop, the session must work as
// before.
func (s *suite) testAgain(t *testing.T) {
	box := s.open(t, tiers.Config{Limits: tiers.Limits{Wall: s.opt.StopAfter, Memory: s.opt.Memory, Output: 1000}})
	for _, source := range []string{
		"while True: pass", `while True:
    try:
        while True: pass
    except: pass`, "import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')",
		"x = []\nwhile True: x.append(bytearray(1 << 20))", "print('x' * 10000)", "def f(): f()\nf()",
		"while True: pass",
		`g = iter([1])
for _ in range(1000000): g = map(int, g)
next(g)`, "import time\ntime.sleep(3600)", "while True: print('x')",
	} {
		box.run(t, source)
		box.checkAlive(t)
	}

	box.mustRun(t, harm.Marked)
	box.mustPrint(t, "print(kept)", "{'since': 'snippet 1'}\n")
}
