package tiersuite

import (
	"encoding/json"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// testFinish tests FINAL and its dialects.
func (s *suite) testFinish(t *testing.T) {
	t.Run("FINAL", func(t *testing.T) { s.playScenarios(t, emptyConfig, finals) })
	t.Run("NotSwallowed", func(t *testing.T) { s.playScenarios(t, emptyConfig, unswallowed) })
	t.Run("Async", func(t *testing.T) {
		s.playScenarios(t, func() tiers.Config { return newHost().config() }, asyncFinals)
	})
	t.Run("FINAL_VAR", func(t *testing.T) { s.playScenarios(t, emptyConfig, finalVars) })
	t.Run("Dialects", func(t *testing.T) { s.playScenarios(t, emptyConfig, dialects) })
	t.Run("Values", s.testFinalValues)
	t.Run("Containers", func(t *testing.T) { s.playScenarios(t, emptyConfig, containerFinals) })
	t.Run("NoValue", func(t *testing.T) { s.playScenarios(t, emptyConfig, refusedFinals) })
	t.Run("OddValues", s.testOddFinals)
}

var finals = []scenario{
	single("it gives the value and ends the snippet", step{source: `print('before')
FINAL('done')
print('after')`, out: "before\n", final: `"done"`}),
	single("it is not echoed", step{source: "FINAL(5)", final: "5"}),
	{name: "the session goes on", steps: []step{
		{source: "x = 1\nFINAL(x)\nx = 2", final: "1"},
		{source: "print(x)", out: "1\n"},
		{source: "FINAL('second')", final: `"second"`},
	}},
	single("in a nested function", step{source: `def f():
    def g():
        FINAL('deep')
    g()
    print('no')
f()
print('no')`, final: `"deep"`}),
	single("in a method, a lambda and a comprehension", step{source: `class C:
    def m(self): [(lambda: FINAL(v))() for v in (7, 8)]
C().m()`, final: "7"}),
	single("in a generator", step{source: `def g():
    yield 1
    FINAL('gen')
list(g())
print('no')`, final: `"gen"`}),
	single("in a sort key", step{source: "sorted([1, 2], key=lambda v: FINAL(v))\nprint('no')", final: "1"}),
	single("in a loop", step{source: `for i in range(10):
    if i == 3:
        FINAL(i)
print('no')`, final: "3"}),
	single("finally blocks run", step{source: `try:
    FINAL(1)
finally:
    print('cleanup')`, out: "cleanup\n", final: "1"}),
	single("context managers are left", step{source: `import contextlib
@contextlib.contextmanager
def cm():
    try:
        yield
    finally:
        print('left')
with cm():
    FINAL('in with')`, out: "left\n", final: `"in with"`}),
	single("in an except block", step{source: `try:
    1 / 0
except ZeroDivisionError:
    FINAL('handled')`, final: `"handled"`}),
	single("in a nested exec", step{source: "exec('FINAL(9)')\nprint('no')", final: "9"}),
	{name: "an alias made before works", steps: []step{
		{source: "done = FINAL"},
		{source: "done('by alias')", final: `"by alias"`},
	}},
	single("no answer without a call", step{source: "# FINAL(5)\ns = 'FINAL(6)'\nprint(s)", out: "FINAL(6)\n"}),
	single("no answer by printing", step{source: `print('{"final": 5}')` + "\nprint('FINAL(5)')", anyOut: true}),
}

var unswallowed = []scenario{
	single("except Exception", step{source: `try:
    FINAL('kept')
except Exception:
    print('swallowed')
print('after')`, final: `"kept"`}),
	single("except Exception in a loop", step{source: `for i in range(3):
    try:
        FINAL(i)
    except Exception as e:
        print(e)`, final: "0"}),
	single("suppress(Exception)", step{source: `import contextlib
with contextlib.suppress(Exception):
    FINAL('kept')
print('after')`, final: `"kept"`}),
	single("a retry decorator", step{source: `def retry(f):
    def w():
        for _ in range(3):
            try:
                return f()
            except Exception:
                print('again')
    return w
@retry
def f(): FINAL('first')
f()`, final: `"first"`}),
	single("except ZeroDivisionError and OSError", step{source: `try:
    FINAL('kept')
except (ZeroDivisionError, OSError, ValueError):
    print('no')
else:
    print('no')`, final: `"kept"`}),
	single("a bare except does not take the answer away", step{source: `try:
    FINAL('kept')
except:
    pass`, final: `"kept"`}),
	single("except BaseException does not take the answer away", step{source: `try:
    FINAL('kept')
except BaseException:
    pass`, final: `"kept"`}),
	single("another exception in a finally block does not take the answer away", step{source: `try:
    FINAL('kept')
finally:
    1 / 0`, status: tiers.StatusRaised, says: []string{"ZeroDivisionError"}, final: `"kept"`}),
}

var asyncFinals = []scenario{
	{name: "after an await", needs: tiers.FeatureAsync, steps: []step{{source: `import asyncio
await asyncio.sleep(0)
FINAL('awaited')
print('no')`, final: `"awaited"`}}},
	{name: "in a coroutine", needs: tiers.FeatureAsync, steps: []step{{source: `import asyncio
async def f():
    await asyncio.sleep(0)
    FINAL('coro')
await f()
print('no')`, final: `"coro"`}}},
	{name: "in a task", needs: tiers.FeatureAsync, steps: []step{
		{source: `import asyncio
async def f():
    await asyncio.sleep(0)
    FINAL('task')
t = asyncio.create_task(f())
await asyncio.sleep(3600)
print('no')`, final: `"task"`},
		{source: "print('alive')", out: "alive\n"},
	}},
	{name: "under gather with return_exceptions", needs: tiers.FeatureAsync, steps: []step{
		{source: `import asyncio
async def f(i):
    await asyncio.sleep(0)
    if i == 1: FINAL('gathered')
    await asyncio.sleep(0)
r = await asyncio.gather(*[f(i) for i in range(3)], return_exceptions=True)
print('no', r)`, final: `"gathered"`},
		{source: "print(await asyncio.gather(asyncio.sleep(0, 'alive')))", out: "['alive']\n"},
	}},
	{name: "in a TaskGroup", needs: tiers.FeatureAsync, steps: []step{
		{source: `import asyncio
async def f():
    await asyncio.sleep(0)
    FINAL('group')
async with asyncio.TaskGroup() as tg:
    tg.create_task(f())
    tg.create_task(asyncio.sleep(3600))
print('no')`, final: `"group"`},
		{source: "print('alive')", out: "alive\n"},
	}},
	{name: "in asyncio.run", needs: tiers.FeatureAsync, steps: []step{
		{source: `import asyncio
async def main():
    await asyncio.sleep(0)
    FINAL('run')
asyncio.run(main())
print('no')`, final: `"run"`},
		{source: "async def again(): return 'alive'\nprint(asyncio.run(again()))", out: "alive\n"},
	}},
	{name: "with except Exception around an await", needs: tiers.FeatureAsync, steps: []step{{source: `import asyncio
async def f(): FINAL('kept')
try:
    await asyncio.create_task(f())
except Exception:
    print('swallowed')
print('no')`, final: `"kept"`}}},
	{name: "with the answer of a host call", steps: []step{{source: "FINAL(ask('q'))", final: `"re: q"`}}},
	{
		name: "with the answer of an awaited host call", needs: tiers.FeatureAsync,
		steps: []step{{source: "FINAL(await ask('q'))", final: `"re: q"`}},
	},
	{name: "with gathered answers", needs: tiers.FeatureAsync, steps: []step{{source: `import asyncio
FINAL(await asyncio.gather(*[ask(p) for p in 'ab']))`, final: `["re: a", "re: b"]`}}},
	{name: "while a host call is pending", needs: tiers.FeatureAsync, steps: []step{
		{source: `import asyncio
t = asyncio.create_task(hang())
await asyncio.sleep(0.01)
FINAL('not waiting')`, final: `"not waiting"`},
		{source: "print(ask('alive'))", out: "re: alive\n"},
	}},
	{name: "in a function that an executor runs", needs: tiers.FeatureAsync, steps: []step{
		{source: `from concurrent.futures import ThreadPoolExecutor
def f(v): FINAL(v)
with ThreadPoolExecutor() as ex:
    list(ex.map(f, ['pool']))
print('no')`, final: `"pool"`},
	}},
}

var finalVars = []scenario{
	{name: "by name", steps: []step{{source: `total = {'sum': 3}
FINAL_VAR('total')
print('no')`, final: `{"sum":3}`, named: "total"}}},
	{name: "a name of an earlier snippet", steps: []step{
		{source: "total = [1]"},
		{source: "FINAL_VAR('total')", final: "[1]", named: "total"},
	}},
	{name: "by name and value", steps: []step{{
		source: "FINAL_VAR('result', 5)\nprint('no')", final: "5",
		named: "result",
	}}},
	{name: "a missing name is an error that lists the variables", steps: []step{
		{source: "revenue = 1\ncosts = 2"},
		{
			source: "FINAL_VAR('profit')\nprint('went on')", raises: "NameError",
			says: []string{"profit", "revenue", "costs"}, hides: []string{"llm_query", "went on\n"},
		},
		{source: "FINAL_VAR('costs')", final: "2", named: "costs"},
	}},
	{name: "a value of None", steps: []step{{source: "v = None\nFINAL_VAR('v')", final: "null", named: "v"}}},
	{name: "not swallowed", steps: []step{{source: `v = 1
try:
    FINAL_VAR('v')
except Exception:
    print('swallowed')`, final: "1", named: "v"}}},
	{name: "called in a function, for a global", steps: []step{{source: `v = 'global'
def f(): FINAL_VAR('v')
f()`, final: `"global"`, named: "v"}}},
}

var dialects = []scenario{
	single("SUBMIT with fields", step{
		source: "SUBMIT(answer='x', score=0.5)\nprint('no')",
		final:  `{"answer":"x","score":0.5}`,
	}),
	single("SUBMIT with a value", step{source: "SUBMIT('x')\nprint('no')", final: `"x"`}),
	single("SUBMIT is not swallowed", step{source: `try:
    SUBMIT(1)
except Exception:
    print('swallowed')`, final: "1"}),
	single("answer ready", step{
		source: "answer['content'] = {'n': 5}\nanswer['ready'] = True", final: `{"n":5}`,
		named: "answer",
	}),
	{name: "answer over two snippets", steps: []step{
		{source: "answer['content'] = 'draft'"},
		{source: "print(answer['content'], answer['ready'])", out: "draft False\n"},
		{source: "answer['content'] = 'final'; answer['ready'] = True", final: `"final"`, named: "answer"},
	}},
	single("answer not ready", step{source: "answer['content'] = 'draft'\nanswer['ready'] = False"}),
	single("answer at the start", step{source: "print(answer)", out: "{'content': '', 'ready': False}\n"}),
	single("answer replaced by something else", step{source: "answer = 42\nprint(answer)", out: "42\n"}),
}

// containerFinals are answers with items that JSON can represent.
var containerFinals = []scenario{
	single("a generator", step{source: "FINAL(n * n for n in range(3))", final: "[0,1,4]"}),
	single("a map, a zip and a filter", step{
		source: "FINAL([map(str, [1]), zip('ab', [1, 2]), filter(None, [0, 1])])",
		final:  `[["1"],[["a",1],["b",2]],[1]]`,
	}),
	single("a range, reversed", step{source: "FINAL([range(3), reversed([1, 2])])", final: "[[0,1,2],[2,1]]"}),
	single("enumerate and itertools", step{
		source: "FINAL([enumerate('a'), itertools.chain([1], [2]), itertools.islice(itertools.count(5), 2)])",
		final:  `[[[0,"a"]],[1,2],[5,6]]`,
	}),
	single("the views of a dict", step{
		source: "d = {'b': 1, 'a': 2}\nFINAL([d.keys(), d.values(), d.items()])",
		final:  `[["b","a"],[1,2],[["b",1],["a",2]]]`,
	}),
	single("a deque", step{source: "FINAL(collections.deque([1, 2]))", final: "[1,2]"}),
	single("a set of numbers is in order", step{source: "FINAL({10, 9, 1})", final: "[1,9,10]"}),
	single("maps of the library", step{
		source: `import types
FINAL([collections.ChainMap({'a': 1}, {'b': 2}), collections.UserDict(c=3), types.MappingProxyType({'d': 4})])`,
		final: `[{"a":1,"b":2},{"c":3},{"d":4}]`,
	}),
	single("texts and lists of the library", step{
		source: "FINAL([collections.UserString('x'), collections.UserList([1])])", final: `["x",[1]]`,
	}),
	single("an iterator beside what needs a second look", step{
		source: "g = (i for i in range(2))\nFINAL([g, {(1, 2): g}])", final: `[[0,1],{"(1, 2)":[0,1]}]`,
	}),
	single("keys that are no texts", step{
		source: "FINAL({1: 'a', 2.5: 'b', True and None: 'c', False: 'd'})",
		final:  `{"1":"a","2.5":"b","null":"c","false":"d"}`,
	}),
	single("an array", step{
		source: "import array\nFINAL([array.array('i', [1, 2])])", final: "[[1,2]]",
	}),
	single("a scalar of a library", step{source: `class int64:
    def tolist(self): return 7
FINAL({'n': int64()})`, final: `{"n":7}`}),
	single("answer ready with an iterator", step{
		source: "answer['content'] = map(len, ['a'])\nanswer['ready'] = True", final: "[1]", named: "answer",
	}),
}

// refusedFinals are invalid answers. The snippet gets an exception, and may answer again.
var refusedFinals = func() []scenario {
	var all []scenario
	for _, c := range []struct{ name, before, value, says string }{
		{"a function", "def total(): return 1", "total", "the function total is not an answer: call it"},
		{"a lambda", "", "lambda: 1", "is not an answer: call it"},
		{"a builtin", "", "len", "the function len is not an answer"},
		{"a method", "", "'a'.upper", "the function upper is not an answer"},
		{"a partial", "import functools", "functools.partial(int)", "is not an answer: call it"},
		{"a class", "class Total: pass", "Total", "the class Total is not an answer"},
		{"a type", "", "list[int]", "is not an answer"},
		{"a module", "", "math", "the module math is not an answer"},
		{"an object without a value", "class Row: pass", "Row()", "a Row has no value"},
		{"a match", "", "re.search('a', 'a')", "a Match has no value"},
		{"matches", "", "re.finditer('a', 'aa')", "a Match has no value"},
		{"a function in a list", "", "[1, {'a': len}]", "the function len is not an answer"},
		{"an ellipsis", "", "...", "pass the value itself"},
		{"an exception", "", "ValueError('lost')", "the exception ValueError is not an answer: lost"},
		{"a failed sub-call", "", "SubCallError('Error: lost')", "a sub-call that failed: Error: lost"},
		{
			"a failed sub-call in a dict", "", "{'a': ['red', SubCallError('Error: lost')]}",
			"has a sub-call that failed in it; repeat the call, or leave it out: Error: lost",
		},
		{"a file", "import io", "io.StringIO('a')", "a file is not an answer"},
		{"NaN", "", "float('nan')", "the answer has nan, which JSON lacks"},
		{"infinity in it", "", "{'a': [1, {'b': -math.inf}]}", "has -inf at ['a'][1]['b'], which JSON lacks"},
		{"NaN from an iterator", "", "(n for n in [1.5, math.nan])", "the answer has nan at [1], which"},
		{"keys that become one", "", "{'1': 2, 1: 1}", "two keys that are '1' in JSON: '1' and 1"},
		{"keys in it that become one", "", "[{'a': {True: 1, 'true': 2}}]", "in [0]['a']: True and 'true'"},
		{"a list in itself", "a = [1]; a.append(a)", "a", "the value contains itself"},
		{"a dict in itself, in a list", "d = {}; d['me'] = d", "[d]", "the value contains itself"},
		{
			"an object in itself", "import dataclasses\n@dataclasses.dataclass\nclass Node:\n    kids: list\n" +
				"n = Node([]); n.kids.append(n)", "n", "the value contains itself",
		},
		{"a set in a list in itself", "a = [{1}]; a.append(a)", "a", "the value contains itself"},
		{"an endless iterator", "", "itertools.count()", "more than 1,000,000 items"},
	} {
		source := c.before + "\ntry:\n    FINAL(" + c.value + ")\nexcept TypeError as e:\n    print(e)"
		all = append(all, single(c.name, step{source: source, anyOut: true, says: []string{c.says}}))
	}
	return append(all,
		single("a variable that is missing", step{
			source: "n = 1\ntry:\n    FINAL_VAR('m')\nexcept NameError as e:\n    print(e)", anyOut: true,
			says: []string{"there is no variable 'm'. Variables: n. Assign it first"},
		}),
		single("a submission of nothing", step{source: "SUBMIT()", raises: "TypeError"}),
		single("a function as answer['content']", step{
			source: "answer['content'] = len\nanswer['ready'] = True", raises: "TypeError",
		}),
		single("an iterator that raises", step{source: "FINAL(1 / n for n in [1, 0])", raises: "ZeroDivisionError"}),
		scenario{name: "a coroutine", needs: tiers.FeatureAsync, steps: []step{
			{
				source: "async def f(): return 1\nc = f()\nFINAL(c)", raises: "TypeError",
				says: []string{"a coroutine is not an answer: await it"},
			},
			{source: "FINAL(await c)", final: "1"},
		}},
	)
}()

// testFinalValues uses each JSON value as the answer.
func (s *suite) testFinalValues(t *testing.T) {
	box := s.open(t, emptyConfig())
	for _, v := range jsonValues {
		if v.want == "" {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			st := step{source: "FINAL(" + v.source + ")", final: v.want}
			st.checkResult(t, box.run(t, st.source))
		})
	}

	for name, st := range map[string]step{
		"a tuple is a list":    {source: "FINAL((1, 'a'))", final: `[1,"a"]`},
		"int keys are strings": {source: "FINAL({1: 'a'})", final: `{"1":"a"}`},
		"an object is its str": {source: `class A:
    def __str__(self): return 'an A'
FINAL(A())`, final: `"an A"`},
		"a complex is its str": {source: "FINAL(1+2j)", final: `"(1+2j)"`},
		"a Decimal is its str": {
			source: "from decimal import Decimal\nFINAL(Decimal('1.50'))",
			final:  `"1.50"`,
		},
		"a Fraction is its str": {
			source: "from fractions import Fraction\nFINAL(Fraction(1, 3))",
			final:  `"1/3"`,
		},
		"an object in a list is its str": {source: "FINAL([1, 2j])", final: `[1,"2j"]`},
		"a str subclass":                 {source: "class S(str): pass\nFINAL(S('x'))", final: `"x"`},
		"a defaultdict": {source: `d = collections.defaultdict(int)
d['a'] += 1
FINAL(d)`, final: `{"a":1}`},
		"a Counter":                     {source: "FINAL(collections.Counter('aab'))", final: `{"a":2,"b":1}`},
		"text with quotes and newlines": {source: "FINAL('a\"b\\n' * 2)", final: `"a\"b\na\"b\n"`},
		"the value is taken at the call": {source: `v = [1]
try:
    FINAL(v)
finally:
    v.append(2)`, final: "[1]"},
		"an expression over the builtins": {source: "FINAL(sorted({3, 1, 2}))", final: "[1,2,3]"},
	} {
		t.Run(name, func(t *testing.T) { st.checkResult(t, box.run(t, st.source)) })
	}
}

// testOddFinals gives answers that JSON cannot represent. There must be an answer in JSON, and the
// session must continue.
func (s *suite) testOddFinals(t *testing.T) {
	box := s.open(t, emptyConfig())
	for name, source := range map[string]string{
		"a set": "{1, 2}", "bytes": "b'\\xff\\x00'", "NaN": "float('nan')", "NaN inside": "{'a': [float('inf')]}",
		"a lone surrogate": "'\\ud800'",
		"a surrogate key":  "{'\\udcff': 1}", "itself": "(lambda l: l.append(l) or l)([])",
		"a generator": "(i for i in [1])", "a function": "len", "a class": "dict",
		"a module": "math", "mixed keys": "{1: 1, 'a': 2, None: 3, (1, 2): 4}",
		"deep nesting": "__import__('functools').reduce(lambda a, _: [a], range(100000), 0)",
		"a big int":    "10 ** 5000", "an exception": "ValueError('x')", "a date": "date(2024, 1, 2)",
		"an Ellipsis": "...", "a memoryview": "memoryview(b'x')",
		"a repr that raises": "type('B', (), {'__repr__': lambda s: 1 / 0, '__str__': lambda s: 1 / 0})()",
		"a dict that lies":   "type('D', (dict,), {'items': lambda s: 1 / 0, 'keys': lambda s: 5})(a=1)",
		"an int that lies":   "type('I', (int,), {'__repr__': lambda s: 'not json', '__str__': lambda s: '}'})(5)",
		"a str that lies":    "type('S', (str,), {'__str__': lambda s: 5, 'encode': lambda *a: 5})('x')",
		"a float that lies":  "type('F', (float,), {'__repr__': lambda s: 'nan, \"forged\": 1'})(1.5)",
	} {
		t.Run(name, func(t *testing.T) {
			r := box.run(t, "FINAL("+source+")")
			if r.Final != nil && !json.Valid(r.Final.Value) {
				t.Errorf("the answer is not JSON: %s", excerpt(string(r.Final.Value)))
			}
			if r.Final == nil && r.Exception == nil {
				t.Errorf("neither an answer nor an exception\n%s", describe(r))
			}

			box.checkAlive(t)
		})
	}
}
