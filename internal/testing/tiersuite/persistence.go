package tiersuite

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/tiers"
)

// The names of the functions in every session: functions of the guest, functions that only a host
// can answer, and functions whose names are everyday words.
const (
	guestNames = "FINAL FINAL_VAR SUBMIT SHOW_VARS"
	hostNames  = "llm_query llm_query_batched llm_batch batch_llm_query llm_query_parallel llm_query_map " +
		"rlm_query rlm_query_batched run_parallel_sub_calls recursive_llm " +
		"recursive_reasoner_tool ask_llm sub_agent_call"
	commonNames   = "predict tally map_llm filter_llm reduce_llm parallel_map chunk answer history"
	protocolNames = hostNames + " " + guestNames
)

// testPersistence tests what a session preserves from snippet to snippet, and what it echoes.
func (s *suite) testPersistence(t *testing.T) {
	t.Run("Echo", func(t *testing.T) { s.playScenarios(t, emptyConfig, echoes) })
	t.Run("Namespace", func(t *testing.T) { s.playScenarios(t, emptyConfig, namespaces) })
	t.Run("Tracebacks", func(t *testing.T) {
		if s.opt.PythonMinor != 0 {
			t.Skip("the marks below a line are those of CPython 3.13")
		}
		s.playScenarios(t, emptyConfig, laterTracebacks)
	})

	t.Run("Reserved", s.testReserved)
	t.Run("Common", s.testCommon)
	t.Run("Given", s.testGiven)
	t.Run("Prebound", func(t *testing.T) { s.playScenarios(t, emptyConfig, prebound) })
}

var echoes = []scenario{
	single("an expression is echoed as its repr", step{source: "'a' + 'é\\n'", out: "'aé\\n'\n"}),
	single("print before the echo", step{source: "print(1)\n2", out: "1\n2\n"}),
	single("None is not echoed", step{source: "None"}),
	single("a call that returns None is not echoed", step{source: "[].append(1)"}),
	single("an assignment is not echoed", step{source: "x = 5"}),
	single("an augmented assignment is not echoed", step{source: "x = 5\nx += 1"}),
	single("a loop is not echoed", step{source: "for i in range(3):\n    i"}),
	single("only the last statement is echoed", step{source: "1\n2\n3", out: "3\n"}),
	single("an expression after a semicolon", step{source: "x = 4; x * 2", out: "8\n"}),
	single("an expression with a trailing semicolon", step{source: "6;", out: "6\n"}),
	single("an expression with a trailing comment", step{source: "7  # seven", out: "7\n"}),
	single("an expression over several lines", step{source: "(1 +\n 2)\n\n\n", out: "3\n"}),
	single("a walrus in parentheses", step{source: "(y := 9)", out: "9\n"}),
	single("a tuple without parentheses", step{source: "1, 'a'", out: "(1, 'a')\n"}),
	single("false values are echoed", step{source: "False", out: "False\n"}),
	single("an empty string is echoed", step{source: "''", out: "''\n"}),
	single("a conditional expression", step{source: "None if True else 1"}),
	single("a function is not called", step{source: "def f(): return 1\nf()", out: "1\n"}),
	single("an expression in an if is not echoed", step{source: "if True:\n    5"}),
	single("a docstring-like snippet", step{source: "'''text'''", out: "'text'\n"}),
	{name: "underscore holds the last echo", steps: []step{
		{source: "40 + 2", out: "42\n"},
		{source: "print(_ + 1)", out: "43\n"},
		{source: "None"},
		{source: "_", out: "42\n"},
	}},
	{name: "a repr that raises is an exception of the snippet", steps: []step{
		{source: `class R:
    def __repr__(self): raise ValueError('no repr')
R()`, raises: "ValueError", says: []string{"no repr"}},
		{source: "print(R.__name__)", out: "R\n"},
	}},
	{name: "a repr that prints", steps: []step{
		{source: `class R:
    def __repr__(self):
        print('side')
        return 'R!'
R()`, out: "side\nR!\n"},
	}},
}

var namespaces = []scenario{
	{name: "variables, functions, classes and imports persist", steps: []step{
		{source: `import math as m
from json import dumps
x = [1]
def f(v): return v + len(x)
class C:
    n = 7`},
		{source: "x.append(2)\nprint(f(10), C.n, m.floor(2.5), dumps(x))", out: "12 7 2 [1, 2]\n"},
		{source: `del x
try:
    f(1)
except NameError as e:
    print(e)`, out: "name 'x' is not defined\n"},
	}},
	{name: "another interpreter that is left open", steps: []step{
		{source: `x = 1
try:
    import _interpreters
    other = _interpreters.create()
except ImportError:
    pass`},
		{source: "x += 1\nprint(x)", out: "2\n"},
		{source: "x += 1\nprint(x)", out: "3\n"},
	}},
	{name: "identity persists", steps: []step{
		{source: "a = b = []\nold = id(a)"},
		{source: "print(a is b, id(a) == old)", out: "True True\n"},
	}},
	{name: "a snippet that raised keeps what it did before", steps: []step{
		{source: `done = ['first']
done.append('second')
1 / 0
done.append('never')`, raises: "ZeroDivisionError"},
		{source: "print(done)", out: "['first', 'second']\n"},
	}},
	{name: "a snippet that does not parse changes nothing", steps: []step{
		{source: "v = 1"},
		{source: "v = 2\nv = = 3", raises: "SyntaxError"},
		{source: "print(v)", out: "1\n"},
	}},
	{name: "generators and iterators go on", steps: []step{
		{source: `def count():
    n = 0
    while True:
        n += 1
        yield n
g = count(); it = iter('abc')
next(g); next(it)`, out: "'a'\n"},
		{source: "print(next(g), next(g), next(it))", out: "2 3 b\n"},
	}},
	{name: "closures and instances go on", steps: []step{
		{source: `def acc():
    t = 0
    def add(v):
        nonlocal t
        t += v
        return t
    return add
add = acc(); add(5)`, out: "5\n"},
		{source: "print(add(2))", out: "7\n"},
	}},
	{name: "a redefined class leaves old instances alone", steps: []step{
		{source: "class P:\n    def hi(self): return 'old'\np = P()"},
		{source: `class P:
    def hi(self): return 'new'
print(p.hi(), P().hi(), isinstance(p, P))`, out: "old new False\n"},
	}},
	{name: "objects of the session pickle", steps: []step{
		{source: "from dataclasses import dataclass\n@dataclass\nclass D:\n    v: int"},
		{source: "import pickle\nprint(pickle.loads(pickle.dumps(D(3))) == D(3))", out: "True\n"},
	}},
	{name: "the module state persists", steps: []step{
		{source: `import sys, random, decimal
random.seed(7); first = random.random(); random.seed(7)
decimal.getcontext().prec = 5
sys.setrecursionlimit(500)`},
		{
			source: "print(random.random() == first, decimal.Decimal(1) / 3, sys.getrecursionlimit())",
			out:    "True 0.33333 500\n",
		},
	}},
	{name: "future imports do not leak into later snippets", steps: []step{
		{source: `from __future__ import annotations
def f(a: undefined_name): ...
print(f.__annotations__)`, out: "{'a': 'undefined_name'}\n"},
		{source: "def g(a: undefined_name): ...", raises: "NameError"},
	}},
	{name: "exit ends the snippet and not the session", steps: []step{
		{source: "v = 1\nimport sys\nsys.exit(4)\nv = 2", status: tiers.StatusExited},
		{source: "print(v)", out: "1\n"},
		{source: "exit()", status: tiers.StatusExited},
		{source: "quit(2)", status: tiers.StatusExited},
		{source: "raise SystemExit('bye')", status: tiers.StatusExited, anyOut: true},
		{source: "print(v)", out: "1\n"},
	}},
	{name: "output is not carried over", steps: []step{
		{source: "import sys\nsys.stdout.write('no newline')", out: "no newline10\n"},
		{source: "print('second')", out: "second\n"},
		{source: "print('err', file=sys.stderr)", out: ""},
		{source: "pass"},
	}},
	{name: "many snippets", steps: append(repeat(200, step{source: "n = globals().get('n', 0) + 1"}),
		step{source: "print(n)", out: "200\n"})},
}

var laterTracebacks = []scenario{
	{name: "a function of snippet 1 raises in snippet 3", steps: []step{
		{source: "def check(row):\n    total = row['a'] + row['b']\n    return total"},
		{source: "rows = [{'a': 1}]"},
		{source: "print('start')\nfor r in rows:\n    check(r)", raises: "KeyError", says: []string{
			"start", `File "<snippet 3>", line 3, in <module>`, "    check(r)\n    ~~~~~^^^",
			`File "<snippet 1>", line 2, in check`, "    total = row['a'] + row['b']", "~~~^^^^^", "KeyError: 'b'",
		}},
	}},
	{name: "each snippet has its own name and lines", steps: []step{
		{source: "f = lambda: 1 / 0"},
		{source: "\n\nf()", raises: "ZeroDivisionError", says: []string{
			`<snippet 2>", line 3`,
			`<snippet 1>", line 1, in <lambda>`,
		}, hides: []string{"<snippet 3>"}},
		{source: "f()", raises: "ZeroDivisionError", says: []string{
			`<snippet 3>", line 1`,
			`<snippet 1>", line 1, in <lambda>`,
		}, hides: []string{"<snippet 2>"}},
	}},
	{name: "a stored exception keeps its traceback", steps: []step{
		{source: `def boom(): raise ValueError('kept')
try:
    boom()
except ValueError as e:
    err = e`},
		{source: "raise RuntimeError('later') from err", raises: "RuntimeError", says: []string{
			`<snippet 1>", line 1, in boom`, "def boom(): raise ValueError('kept')",
			"The above exception was the direct cause", `<snippet 2>", line 1`,
		}},
	}},
	{name: "traceback.print_exc in a later snippet quotes the lines", steps: []step{
		{source: "def f():\n    return {}['missing']"},
		{source: `import traceback
try:
    f()
except KeyError:
    print(traceback.format_exc())`, says: []string{"return {}['missing']", `<snippet 1>", line 2, in f`}},
	}},
	{name: "inspect.getsource of an earlier snippet", steps: []step{
		{source: "def add(a, b):\n    # adds\n    return a + b"},
		{source: "import inspect\nprint(inspect.getsource(add))", out: `def add(a, b):
    # adds
    return a + b

`},
	}},
	{name: "no frame of the runtime shows", steps: []step{
		{source: "raise ValueError('bare')", raises: "ValueError", says: []string{`Traceback (most recent call last):
  File "<snippet 1>", line 1, in <module>
    raise ValueError('bare')
ValueError: bare`}},
	}},
}

// testReserved overwrites and deletes every name of the protocol, by every means available to a
// snippet, and checks that they exist again in the next snippet.
func (s *suite) testReserved(t *testing.T) {
	cfg := func() tiers.Config {
		cfg := tiers.Config{
			Host:   newHost(),
			Inputs: []tiers.Input{{Name: "list", Value: tiers.Value(`["the","context"]`)}},
		}
		for name := range strings.FieldsSeq(hostNames) {
			cfg.Functions = append(cfg.Functions, tiers.Function{Name: name})
		}
		return cfg
	}
	look := "missing = [n for n in '" + protocolNames + "'.split() if not callable(globals().get(n))]\n" +
		"print(missing, context, context_0)"
	want := "[] ['the', 'context'] ['the', 'context']\n"
	var scenarios []scenario

	for name, damage := range map[string]string{
		"there at the start": "pass",
		"overwritten":        "for n in names: globals()[n] = 5",
		"deleted":            "for n in names: del globals()[n]",
		"cleared":            "globals().clear()",
		"shadowed by a def":  "def llm_query(p): return 'mine'\nclass FINAL: pass\nimport math as context",
		"shadowed by a loop": `for FINAL in range(3): pass
import contextlib
with contextlib.nullcontext(1) as context: pass`,
		"and then it raised":   "for n in names: globals()[n] = 5\n1/0",
		"and then it exited":   "for n in names: globals()[n] = 5\nraise SystemExit",
		"through the module":   "import __main__\nfor n in names: setattr(__main__, n, None)",
		"shadowed in builtins": "import builtins\nfor n in names: setattr(builtins, n, None)",
	} {
		prepare := "names = '" + protocolNames + " context context_0'.split()\n"
		scenarios = append(scenarios, scenario{name: name, steps: []step{
			{source: prepare + damage, status: endingOf(damage)},
			{source: look, out: want},
			{source: "FINAL(len(context))", final: "2"},
		}})
	}

	s.playScenarios(t, cfg, scenarios)
}

// testCommon rebinds the everyday words among the names, and the names of functions that the host
// does not offer. These bindings must persist.
func (s *suite) testCommon(t *testing.T) {
	offered := func() tiers.Config {
		cfg := newHost().config()
		for name := range strings.FieldsSeq(commonNames) {
			if f, ok := protocol.Lookup(name); ok {
				cfg.Functions = append(cfg.Functions, tiers.Function{Name: name, Doc: f.Doc})
			}
		}
		return cfg
	}
	look := step{source: "print([n for n in names if globals()[n] != 5])", out: "[]\n"}
	take := func(names string) []step {
		return []step{
			{source: "names = '" + names + "'.split()\nfor n in names: globals()[n] = 5"},
			look,
			{source: "1/0", raises: "ZeroDivisionError"},
			look,
		}
	}

	s.playScenarios(t, emptyConfig, []scenario{
		{name: "words", steps: take(commonNames)},
		{name: "what no host offers", steps: take(hostNames)},
		{name: "a def and its use", steps: []step{
			{source: "def predict(rows): return [r * 2 for r in rows]"},
			{source: "print(predict([1, 2]))", out: "[2, 4]\n"},
			{source: "def twice(xs): return predict(xs)\nprint(twice([3]))", out: "[6]\n"},
		}},
		{name: "a coroutine of that name", needs: tiers.FeatureAsync, steps: []step{
			{
				source: "async def predict(x): return x * 2\nc = predict(1)\nprint(type(c).__name__, await c)",
				out:    "coroutine 2\n",
			},
			{source: "c = predict(2)\nprint(type(c).__name__, await c)", out: "coroutine 4\n"},
		}},
		{name: "SHOW_VARS shows them", steps: []step{
			{source: "predict = [1, 2]"},
			{source: "SHOW_VARS()", says: []string{"predict: list (2)"}},
			{source: "FINAL_VAR('tally')", raises: "NameError", says: []string{"no variable 'tally'"}},
			{source: "FINAL_VAR('predict')", final: "[1,2]", named: "predict"},
		}},
	})
	s.playScenarios(t, offered, []scenario{
		{name: "words that the host offers", steps: append(
			take(commonNames), step{source: "del predict\nprint('predict' in globals())", out: "False\n"},
		)},
		{name: "the host's other names", steps: []step{
			{source: "llm_query = ask = predict = 5"},
			{source: "print(llm_query('a'), ask('b'), predict)", out: "re: a re: b 5\n"},
		}},
	})
}

func endingOf(source string) tiers.Status {
	switch {
	case strings.HasSuffix(source, "1/0"):
		return tiers.StatusRaised
	case strings.HasSuffix(source, "SystemExit"):
		return tiers.StatusExited
	}
	return tiers.StatusOK
}

var prebound = []scenario{
	single("modules are there without an import", step{
		source: "print(json.dumps([1]), re.findall('a', 'banana'), math.floor(2.5), " +
			"collections.Counter('aab').most_common(1), next(itertools.count(3)), statistics.mean([1, 3]))",
		out: "[1] ['a', 'a', 'a'] 2 [('a', 2)] 3 2\n",
	}),
	single("names of datetime are there without an import", step{
		source: "print(date(2024, 1, 31) + timedelta(days=1), timezone.utc, datetime.datetime.min.year)",
		out:    "2024-02-01 UTC 1\n",
	}),
	single("names of modules are what an import gives", step{
		source: `names = "json re math collections itertools statistics datetime time asyncio".split()
print([n for n in names if globals()[n] is not __import__(n)], time.time() > 0)`,
		out: "[] True\n",
	}),
	single("time zones without those of the system", step{source: `import zoneinfo, importlib.resources
zoneinfo.reset_tzpath([])
tokyo = zoneinfo.ZoneInfo.no_cache("Asia/Tokyo")
print(tokyo, tokyo.utcoffset(datetime.datetime(2024, 1, 1)), "America/New_York" in zoneinfo.available_timezones())
import tzdata.zoneinfo.America.Argentina
print(importlib.resources.is_resource("tzdata.zoneinfo.America.Argentina", "Ushuaia"))
for name in "tzdata.zoneinfo.Mars", "tzdata.zones", "tzdata.zoneinfo.Europe.Berlin", "tzdata.zoneinfo.":
    try:
        __import__(name)
        print("imports", name)
    except ModuleNotFoundError as e:
        pass
for name in "../zones", "Mars/Base", "", "Europe/Berlin/x", "Europe":
    try:
        zoneinfo.ZoneInfo(name)
        print("found", name)
    except (ValueError, KeyError, OSError):
        pass`, out: "Asia/Tokyo 9:00:00 True\nTrue\n"}),
	single("help", step{
		source: "help(llm_query)\ntry:\n    help(ask_llm); help(len)\nfinally:\n    print(repr(help)[:17])",
		says: []string{
			"Help on host function llm_query:\n\n" +
				"llm_query(prompt, model=None, schema=None, images=None): asks a language",
			"Help on host function ask_llm:\n\n", "Help on built-in function len in module builtins:",
			"Type help(object)",
		},
	}),
	single("an import works as well", step{
		source: `import json, datetime, time
from math import pi
print(json.loads('1'), datetime.date(2024, 1, 1), time.time() > 0, round(pi, 2))`,
		out: "1 2024-01-01 True 3.14\n",
	}),
	single("the namespace is the main module", step{source: `import __main__
x = 3
print(__name__, __main__.x, vars(__main__) is globals())`, out: "__main__ 3 True\n"}),
	single("SHOW_VARS shows the user's names alone", step{
		source: "rows = [1, 2, 3]\ntitle = 'é'\ndef helper(): pass\nSHOW_VARS()",
		says:   []string{"rows", "list", "3", "title", "str", "helper"}, hides: []string{
			"llm_query",
			"FINAL", "__builtins__", "statistics",
		},
	}),
}

func repeat(n int, st step) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i] = st
	}
	return steps
}
