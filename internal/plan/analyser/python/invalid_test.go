package python

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// invalid holds snippets that are not valid Python: first those rejected by the parser, then those
// rejected only by the compiler.
var invalid = []string{
	"x = = 1",
	"def f(:\n  pass",
	"if x\n  y",
	"print 'a'",
	"for i in range(3)\n    print(i)",
	"x = [1, 2",
	"x = (1,\n",
	"s = 'abc",
	"s = '''abc\nd",
	"f'{x'",
	"f'{}'",
	"f'{x!z}'",
	"  x = 1",
	"if x:\npass",
	"if x:\n    a\n  b",
	"if x:\n\ta\n        b",
	"class A\n  pass",
	"1 = x",
	"f() = 1",
	"x + 1 = 2",
	"del f()",
	"import",
	"from x import",
	"lambda x: = 1",
	"a b c",
	"x = 5 6",
	"else:\n  pass",
	"try:\n  x",
	"async x = 1",
	"x = yield = 1",
	"None = 1",
	"def f(a=1, b): pass",
	"f(a=1, 2)",
	"f(**k, *a)",
	"x ≠ 1",
	"x = “a”",
	"€ = 1",
	"0777",
	"1__0",
	"0x",
	"1e",
	"@",
	"x = $a",
	"a ? b : c",
	"x++",
	"match x:\n  case 1\n    pass",
	"Here is the code you asked for:",
	"I think the answer is 42.",
	"```python\nx = 1\n```",
	"x = 1\n```",
	"function f() { return 1; }",
	"SELECT * FROM t;",
	"<html></html>",
	"x = {1: 2, 3}",
	"\x00",
	"x = 1\x00",
	"x = '\xff'",
	"# caf\xe9\nx",
	"x = 1\n\xff\xfe",
	"with open('x') as f",
	"print(f\"{d[\"a\"]}\") \"",
	"def f():\n    '''doc\n    return 1",
	"\ufeffx = = 1",
	"x = 1\r\ny = = 2\r\n",
	"x = 1\ry = = 2",
	"type X = = 1",
	"def f[T(x): pass",
	"not",
	"x = 08",
	"assert",
	"raise x from",
	"global",
	"return",
	"f(x for x in y, 1)",
	"{**a for a in b}",
	"(*a)",
	"b'é'",

	"return 1",
	"x = 1\nreturn x",
	"class A:\n    return 1",
	"yield 1",
	"x = yield",
	"class A:\n    yield 1",
	"[(yield 1) for x in y]",
	"def f():\n    await g()",
	"def f():\n    async with a: pass",
	"def f():\n    async for a in b: pass",
	"def f():\n    return [x async for x in y]",
	"lambda: await f()",
	"class A:\n    await f()",
	"break",
	"continue",
	"if x:\n    break",
	"for x in y: pass\nelse: break",
	"while x:\n    def f(): break",
	"def f():\n    continue",
	"def f(a, a): pass",
	"lambda a, a: 1",
	"def f(a, *a): pass",
	"nonlocal x",
	"def f():\n    nonlocal x",
	"def f():\n    x = 1\n    global x",
	"def f(x):\n    global x",
	"x = *a",
	"*a = b",
	"*a, *b = c",
	"return *a",
	"*x",
	"del *x",
	"f(a=1, a=2)",
	"def f():\n    from x import *",
	"try: pass\nexcept: pass\nexcept E: pass",
	"from __future__ import nope",
	"x = 1\nfrom __future__ import annotations",
	"match x:\n    case a: pass\n    case b: pass",
	"match x:\n    case [a, a]: pass",
	"match x:\n    case a | 1: pass",
	"[x := 1 for x in y]",
	"[y := 1 for x in (y := 2)]",
	"class A:\n    [y := 1 for x in z]",
	"__debug__ = 1",
	"def f(__debug__): pass",
	"async def f():\n    yield 1\n    return 2",
	"async def f():\n    yield from g()",
	"try: pass\nexcept* E:\n    return",
	"def f():\n    for x in y:\n        try: pass\n        except* E: break",
	"def f[T, T](): pass",
	"class A[T](x := 1): pass",
	"type X = (yield)",
	"def f():\n    import a as __debug__",
	"with a as *b: pass",
	"for *x in y: pass",
	"def f():\n    print(x)\n    global x",
	"x: int = 1\ndef f():\n    global x\n    x: int = 2",
	"print(*a, **b, *c)",
}

// numbered returns the exception of an invalid snippet as a tier reports it for the snippet with
// the given ordinal. The analyser does not have the ordinal.
func numbered(invalid *tiers.Exception, ordinal int) *tiers.Exception {
	const file = "<snippet>"
	e := *invalid
	name := fmt.Sprintf("<snippet %d>", ordinal)
	e.Traceback = strings.Replace(e.Traceback, `"`+file+`"`, `"`+name+`"`, 1)
	e.Message = strings.Replace(e.Message, "("+file+",", "("+name+",", 1)
	return &e
}

// TestInvalidIsWhatTheTierReports compares each verdict with the tier's result for the snippet: the
// type, the message and the traceback.
func TestInvalidIsWhatTheTierReports(t *testing.T) {
	a, tier := open(t)
	s, err := tier.Open(context.Background(), tiers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n, source := range invalid {
		r, err := s.Run(context.Background(), tiers.Job{Source: source})
		if err != nil {
			t.Fatal(err)
		}
		v, err := a.Analyse(context.Background(), source)
		if err != nil {
			t.Fatal(err)
		}
		if v.Invalid == nil {
			t.Errorf("%q: not invalid but %+v %q; the tier says %+v",
				source, v.Needs, v.Unknown, r.Exception)
			continue
		}
		want := r.Exception
		if want == nil {
			t.Errorf("%q: invalid, and the tier runs it: %+v", source, v.Invalid)
			continue
		}
		want.ExitCode = 0
		if got := numbered(v.Invalid, n+1); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\ngot  %+v\nwant %+v", source, got, want)
		}
	}
}

// TestUnusualButValidSnippetsAreAccepted checks snippets that look wrong but are valid.
func TestUnusualButValidSnippetsAreAccepted(t *testing.T) {
	a, _ := open(t)
	for _, source := range []string{
		"", "\n\n", "# only a comment", "await f()", "async with a as b: pass",
		"async for x in y: pass\nelse: pass", "x = [i async for i in y]",
		"x = *a, b", "print(*a, *b, **c)", "first, *rest = x", "[*a, *b]",
		"def f():\n    return *a, b", "lambda: (yield)",
		"for x in y:\n    if x: break\nelse: pass",
		"while True:\n    try: pass\n    finally: continue", "global x\nx = 1",
		"def f():\n    yield\n    return 1", "async def f():\n    yield 1\n    return",
		"f'{x!r:>{w}} {f\"{y}\"} {z=}'", "match = 1\ncase = 2\ntype = 3\nprint(match)",
		"match x:\n    case {'a': 1, **r}: pass\n    case _: pass",
		"try: pass\nexcept* ValueError as e: print(e)", "type X[*Ts, **P] = int",
		"def f(a, /, b, *, c): pass", "if (n := 1) > 0: print([n := n + i for i in y])",
		"@a.b[0](c)\ndef f(): ...",
		"async def f():\n    return [await x for x in y]", "with (a as b, c as d): pass",
		"class A[T: int = str]: pass", "print('\\d')", "\ufeffx = 1", "x = 1\r\ny = 2\rz = 3",
	} {
		t.Run(source, func(t *testing.T) {
			if v, err := a.Analyse(context.Background(), source); err != nil || v.Needs == nil {
				t.Errorf("%q: %+v %q %v", source, v.Invalid, v.Unknown, err)
			}
		})
	}
}

// TestUnanalysableSnippetsAreReported checks snippets that cannot be analysed, and that the
// analyser still works afterwards.
func TestUnanalysableSnippetsAreReported(t *testing.T) {
	a, _ := open(t)
	for name, source := range map[string]string{
		"deep parentheses": strings.Repeat("(", 5000) + strings.Repeat(")", 5000),
		"deep lists":       "x = " + strings.Repeat("[", 150) + strings.Repeat("]", 150),
		"deep attributes":  "a" + strings.Repeat(".b", 50_000),
		"deep sums":        "1" + strings.Repeat("+1", 60_000),
		"deep unary":       strings.Repeat("-", 20_000) + "1",
		"deep lambdas":     strings.Repeat("lambda:", 10_000) + "1",
		"too long":         strings.Repeat("x = 1\n", maxSource/6+1),
	} {
		t.Run(name, func(t *testing.T) {
			if v, err := a.Analyse(context.Background(), source); err != nil || v.Unknown == "" {
				t.Errorf("%s: %+v, %v", name, v, err)
			}
			if n := needs(t, a, "x = "+name[:4]); len(n.Writes) != 1 {
				t.Errorf("after %s: %+v", name, n)
			}
		})
	}
}
