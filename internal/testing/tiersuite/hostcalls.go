package tiersuite

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// testHostCalls tests single calls: which values cross the wall, which do not, and how limits
// affect calls.
func (s *suite) testHostCalls(t *testing.T) {
	cfg := func() tiers.Config { return newHost().config() }
	t.Run("Calls", func(t *testing.T) { s.playScenarios(t, cfg, calls) })
	t.Run("Values", s.testValues)
	t.Run("Errors", func(t *testing.T) { s.playScenarios(t, cfg, callErrors) })
	t.Run("Arguments", s.testArguments)
	t.Run("NoModel", s.testNoModel)
	t.Run("Limit", s.testCallLimit)
	t.Run("WaitIsFree", s.testWaitIsFree)
	t.Run("TimedCallEnds", s.testTimedCallEnds)
	t.Run("WorkBehindACall", s.testWorkBehindACall)
	t.Run("Cancel", s.testCancelCall)
	t.Run("Stale", s.testStale)
}

var calls = []scenario{
	single("a call returns its value", step{source: "x = ask('p')\nprint(x)", out: "re: p\n"}),
	single("a call is echoed", step{source: "ask('p')", out: "'re: p'\n"}),
	single("an awaited call", step{source: "x = await ask('p')\nprint(x)", out: "re: p\n"}),
	single("called and awaited in one snippet", step{source: `a = ask('1')
b = await ask('2')
c = ask('3')
print(a, b, c)`, out: "re: 1 re: 2 re: 3\n"}),
	single("called in a plain function", step{
		source: "def f(p): return ask(p).upper()\nprint(f('x'))",
		out:    "RE: X\n",
	}),
	single("called in a comprehension", step{
		source: "print([ask(str(i)) for i in range(3)])",
		out:    "['re: 0', 're: 1', 're: 2']\n",
	}),
	single("called by map, sorted and a lambda",
		step{
			source: "print(list(map(ask, 'ab')), sorted('ba', key=ask), (lambda p: ask(p))('c'))",
			out:    "['re: a', 're: b'] ['a', 'b'] re: c\n",
		}),
	single("called in an f-string", step{source: "print(f\"{ask('a')} {ask('b')!r}\")", out: "re: a 're: b'\n"}),
	single("called in a class body and a method", step{source: `class C:
    a = ask('body')
    def m(self): return ask('method')
print(C.a, C().m())`, out: "re: body re: method\n"}),
	single("called in a generator", step{source: `def g():
    for i in range(2): yield ask(str(i))
print(list(g()))`, out: "['re: 0', 're: 1']\n"}),
	single("under another name", step{source: `q = ask
def wrap(f): return lambda p: f(p)
print(q('1'), wrap(ask)('2'))`, out: "re: 1 re: 2\n"}),
	single("called in a coroutine without await", step{source: `import asyncio
async def f(p):
    x = ask(p)
    return x + '!'
print(asyncio.run(f('p')))`, out: "re: p!\n"}),
	single("called in a coroutine with await", step{source: `import asyncio
async def f(p):
    x = await ask(p)
    return x + '!'
print(await f('p'))`, out: "re: p!\n"}),
	single("a conditional call in a coroutine", step{source: `async def f(p):
    return (ask(p) if p else 'none') + '!'
print(await f('p'), await f(''))`, out: "re: p! none!\n"}),
	single("its name and docstring", step{
		source: "print(ask.__name__, ask.__doc__, callable(ask))",
		out:    "ask The test's ask. True\n",
	}),
	single("a helper defined in an earlier snippet with await", step{source: `async def both(p):
    a = await ask(p)
    b = ask(p + p)
    return [a, b]
print(await both('x'))`, out: "['re: x', 're: xx']\n"}),
	{name: "calls in later snippets", steps: []step{
		{source: "def f(p): return ask(p)"},
		{source: "print(f('1'))", out: "re: 1\n"},
		{source: "print(await ask(f('2')))", out: "re: re: 2\n"},
	}},
}

var callErrors = []scenario{
	single("a host error is an exception with its text", step{
		source: "fail('the quota ran out: é')",
		status: tiers.StatusRaised, says: []string{"the quota ran out: é"},
	}),
	single("a host error can be caught", step{source: `try:
    fail('broken pipe')
except Exception as e:
    print('caught', e)`, out: "caught broken pipe\n"}),
	single("an awaited host error can be caught", step{source: `try:
    await fail('late')
except Exception as e:
    print('caught', e)`, out: "caught late\n"}),
	single("a host error in gather is a result", step{source: `import asyncio
r = await asyncio.gather(ask('a'), fail('b'), return_exceptions=True)
print(r[0], isinstance(r[1], Exception), r[1])`, out: "re: a True b\n"}),
	single("a host error has the snippet's lines", step{source: `def f():
    return fail('inside')
f()`, status: tiers.StatusRaised, says: []string{
		`<snippet 1>", line 3, in <module>`, `<snippet 1>", line 2, in f`,
		"return fail('inside')", "inside",
	}}),
	single("a traceback shows no frame of the runtime", step{source: `import traceback
def bad(x):
    print([f.filename for f in traceback.extract_stack() if "rlm" in f.filename])
    fail('no')
try:
    parallel_map(bad, [0])
except HostError as e:
    print(type(e).__module__, "rlm" in traceback.format_exc(), traceback.format_exc().count("in bad"))
    raise`, out: "[]\nbuiltins False 1\n", status: tiers.StatusRaised, says: []string{"in bad", "\nHostError: no"}}),
	{name: "a host function panics or ends its goroutine", steps: []step{
		{source: `for f in panics, leaves:
    try:
        f()
    except Exception as e:
        print(type(e).__name__, e)
kept = 1`, out: "HostError panics failed: the host function panicked\n" +
			"HostError leaves failed: the host function ended its goroutine\n"},
		{source: "print(kept)", out: "1\n"},
	}},
	single("host functions panic at the same time", step{source: `import asyncio
for r in await asyncio.gather(panics(), ask('a'), leaves(), panics(), return_exceptions=True):
    print(r)`, out: "panics failed: the host function panicked\nre: a\n" +
		"leaves failed: the host function ended its goroutine\n" +
		"panics failed: the host function panicked\n"}),
	single("the class of an error", step{source: `import asyncio
for kind in (RuntimeError, Exception):
    try:
        fail('no')
    except kind as e:
        print(type(e).__name__, type(e).__bases__, isinstance(e, OSError))
async def started():
    try:
        await fail('no')
    except RuntimeError as e:
        return type(e).__bases__
print(await started())`, out: strings.Repeat("HostError (<class 'RuntimeError'>,) False\n", 2) +
		"(<class 'RuntimeError'>,)\n"}),
	single("an empty error text", step{source: `try:
    fail('')
except Exception as e:
    print(repr(str(e)))`, anyOut: true}),
	single("a long error text", step{source: `try:
    fail('x' * 100000)
except Exception as e:
    print(len(str(e)))`, out: "100000\n"}),
	single("an answer that is no JSON", step{source: `try:
    raw('{nonsense')
except Exception as e:
    print('caught')`, out: "caught\n"}),
	single("an empty answer is None", step{source: "print(raw(''))", out: "None\n"}),
	single("an unknown name is a NameError", step{source: "no_such_function('p')", raises: "NameError"}),
	single("a missing argument is the host's to judge", step{source: `try:
    ask()
except Exception as e:
    print('caught', 'ask needs 1' in str(e))`, out: "caught True\n"}),
	{name: "the session goes on after host errors", steps: []step{
		{source: "fail('one')", status: tiers.StatusRaised, says: []string{"one"}},
		{source: "print(ask('two'))", out: "re: two\n"},
	}},
}

// jsonValues are Python expressions with the JSON in which they arrive. Each must also return as an
// equal value.
var jsonValues = []struct{ name, source, want string }{
	{"None", "None", "null"},
	{"True", "True", "true"},
	{"False", "False", "false"},
	{"zero", "0", "0"},
	{"a negative int", "-42", "-42"},
	{"a big int", "2**80", "1208925819614629174706176"},
	{"a float", "0.1", "0.1"},
	{"a whole float", "3.0", "3.0"},
	{"a tiny float", "5e-324", "5e-324"},
	{"a huge float", "1.7976931348623157e308", "1.7976931348623157e+308"},
	{"an empty str", "''", `""`},
	{"quotes and escapes", `'"\\/\n\r\t\x00\x1f\x7f'`, `"\"\\/\n\r\t\u0000\u001f\u007f"`},
	{"text of many scripts", "'é Привет 你好 עברית 😀 e\\u0301 \\u2028'", `"é Привет 你好 עברית 😀 e\u0301 \u2028"`},
	{"an empty list", "[]", "[]"},
	{"an empty dict", "{}", "{}"},
	{
		"nested", "{'a': [1, {'b': [None, [True, 'x', -1.5]]}], 'é': {}}",
		`{"a":[1,{"b":[null,[true,"x",-1.5]]}],"é":{}}`,
	},
	{"a long list", "list(range(1000))", ""},
	{"a megabyte of text", "'né ' * 262144", ""},
}

// testValues sends each value to the host and back.
func (s *suite) testValues(t *testing.T) {
	box := s.open(t, newHost().config())
	for _, v := range jsonValues {
		t.Run(v.name, func(t *testing.T) {
			box.mustPrint(t, "v = "+v.source+`
back = echo(v)
print(back == v, type(back) is type(v))`, "True True\n")
			if v.want != "" {
				r := box.mustRun(t, "import json\nprint(json.dumps(seen(v)))")
				var got string
				if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil || !sameJSON(got, v.want) {
					t.Errorf("it arrived as %s, want %s (%v)", excerpt(got), v.want, err)
				}
			}
		})
	}

	// Values that JSON cannot represent must arrive in some form, and must not break anything.
	for name, source := range map[string]string{
		"a tuple": "(1, 2)", "a set": "{1}", "bytes": "b'\\xff'", "NaN": "float('nan')", "infinity": "float('inf')",
		"a lone surrogate": "'\\ud800x'", "int keys": "{1: 2}", "an object": "object()",
		"itself":       "(lambda l: l.append(l) or l)([])",
		"deep nesting": "__import__('functools').reduce(lambda a, _: [a], range(100000), 0)", "a class": "int",
		"a generator": "(i for i in [1])",
		"a complex":   "1j", "a str that raises": "type('B', (), {'__str__': lambda self: 1 / 0})()",
		"datetime": "date(2024, 1, 2)",
	} {
		t.Run("odd: "+name, func(t *testing.T) {
			box.mustRun(t, "try:\n    seen("+source+")\nexcept Exception as e:\n    pass")
			box.checkAlive(t)
		})
	}
}

// testArguments checks the calls as received by the host.
func (s *suite) testArguments(t *testing.T) {
	host := newHost()
	box := s.open(t, host.config())
	box.mustRun(t, "echo(1, 'two', [3], named=4, other={'five': 6})\necho()")
	r := box.mustRun(t, "echo(*[1, 2], **{'k': None})")
	if r.Usage.HostCalls != 1 {
		t.Errorf("the second snippet made %d host calls, want 1", r.Usage.HostCalls)
	}

	want := []tiers.Call{
		{Function: "echo", Args: makeList(`1`, `"two"`, `[3]`), Named: map[string]tiers.Value{
			"named": tiers.Value(`4`),
			"other": tiers.Value(`{"five":6}`),
		}, Snippet: 1, Ordinal: 1},
		{Function: "echo", Snippet: 1, Ordinal: 2},
		{
			Function: "echo", Args: makeList(`1`, `2`), Named: map[string]tiers.Value{"k": tiers.Value(`null`)},
			Snippet: 2, Ordinal: 1,
		},
	}

	made := host.made()
	if len(made) != len(want) {
		t.Fatalf("the host got %d calls, want %d", len(made), len(want))
	}
	for i := range want {
		if !sameJSON(mustJSON(t, made[i]), mustJSON(t, want[i])) {
			t.Errorf("call %d is %s, want %s", i+1, mustJSON(t, made[i]), mustJSON(t, want[i]))
		}
	}
}

func makeList(values ...string) []tiers.Value {
	out := make([]tiers.Value, len(values))
	for i, v := range values {
		out[i] = tiers.Value(v)
	}
	return out
}

// mustJSON encodes a call; nil and empty arguments or names are encoded in the same way.
func mustJSON(t *testing.T, c tiers.Call) string {
	t.Helper()
	if len(c.Args) == 0 {
		c.Args = nil
	}
	if len(c.Named) == 0 {
		c.Named = nil
	}

	b, err := json.Marshal(c)
	if err != nil {
		t.Fatalf("a call does not encode: %v", err)
	}
	return string(b)
}

// testNoModel calls a model in sessions without a model.
func (s *suite) testNoModel(t *testing.T) {
	noFunctions := newHost().config()
	noFunctions.Functions = nil
	for name, cfg := range map[string]tiers.Config{"no host": {}, "a host without functions": noFunctions} {
		t.Run(name, func(t *testing.T) {
			box := s.open(t, cfg)
			st := step{source: "llm_query('hello')", status: tiers.StatusRaised, says: []string{"no model configured"}}
			st.checkResult(t, box.run(t, st.source))
			box.mustPrint(t, `for f in (llm_query, rlm_query, ask_llm):
    try:
        f('hello')
    except Exception as e:
        print('no model configured' in str(e))`, "True\nTrue\nTrue\n")

			if s.info.Has(tiers.FeatureAsync) {
				box.mustPrint(t, `try:
    await llm_query('hello')
except Exception as e:
    print('no model configured' in str(e))`, "True\n")
			}
		})
	}
}
