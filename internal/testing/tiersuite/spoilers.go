package tiersuite

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// spoilers are snippets after which a careless tier could not save any variable of the session.
// They have odd names in all places, and objects that misbehave when inspected. If there is a loss,
// its name contains names.
var spoilers = []struct{ name, source, use, names string }{
	{"a name with a lone surrogate", `globals()["\ud800"] = [work]`, `globals()["\ud800"][0] is work`, ""},
	{
		"names that differ in a lone surrogate", `globals().update({"\ud800": 1, "\ud801": 2, "?": 3, "\ufffd": 4})`,
		`[globals()[n] for n in ("\ud800", "\ud801", "?", "\ufffd")] == [1, 2, 3, 4]`, "",
	},
	{
		"names that are no identifiers", `globals().update({"": 1, "a\0b": 2, "\n": 3, "x" * 100_000: 4})`,
		`[globals()[n] for n in ("", "a\0b", "\n", "x" * 100_000)] == [1, 2, 3, 4]`, "",
	},
	{
		"thousands of odd names", `for i in range(2000): globals()[f"\udfff{i}"] = i`,
		`globals()["\udfff1999"] == 1999`, "",
	},
	{
		"names that are no text", `globals().update({5: 1, (1, (2,)): 2, None: 3, 1.5: 4, b"x": 5, frozenset([1]): 6})`,
		`[globals()[n] for n in (5, (1, (2,)), None, 1.5, b"x", frozenset([1]))] == [1, 2, 3, 4, 5, 6]`, "",
	},
	{
		"a name of a class of its own", `class S(str):
    def __eq__(self, other): return False
    def __hash__(self): return 7
globals()[S("odd")] = 1`, `[type(n).__name__ for n in globals() if str(n) == "odd"] == ["S"]`, "",
	},
	{"a name that fails when it is compared", evil + `globals()[Evil(1)] = 5`, `5 in list(globals().values())`, ""},
	{
		"a name that hangs when the session's names are set", `class Same:
    def __hash__(self): return hash("context")
    def __eq__(self, other):
        while True: pass
globals()[Same()] = 5`, `True`, "",
	},
	{
		"a module's text that fails when it is compared", evil + `__doc__ = __package__ = Evil(2)`,
		`type(__doc__) is Evil`, "",
	},
	{
		"an attribute of a module", `import math; setattr(math, "\ud800", [work])`,
		`getattr(__import__("math"), "\ud800")[0] is work`, "",
	},
	{
		"a name of a module that is no text", `import math; vars(math)[5] = 1`,
		`5 in vars(__import__("math"))`, "math.int",
	},
	{
		"an attribute of a class of a library", `import json; setattr(json.JSONDecoder, "\ud800", 1)`,
		`getattr(__import__("json").JSONDecoder, "\ud800") == 1`, "",
	},
	{
		"names of a class and its instance", `class A: pass
a = A(); setattr(A, "\ud800", 1); vars(a).update({"\udfff": 2, 5: 3})`,
		`(getattr(A, "\ud800"), vars(a)["\udfff"], vars(a)[5]) == (1, 2, 3)`, "",
	},
	{
		"the names that a class says of itself", `class A: pass
a = A(); A.__qualname__ = "\ud800"; A.__module__ = "\ud801"`,
		`(type(a) is A, A.__qualname__, A.__module__) == (True, "\ud800", "\ud801")`, "",
	},
	{
		"the names that a function says of itself", `def f(): return work
f.__name__ = "\ud800"; f.__qualname__ = "\ud801"; f.__module__ = "\ud802"; setattr(f, "\ud803", 5)`,
		`(f() is work, f.__name__, getattr(f, "\ud803")) == (True, "\ud800", 5)`, "",
	},
	{
		"the name of a module", `import sys, types
m = sys.modules["odd\ud800"] = types.ModuleType("odd\ud800"); m.x = work`,
		`__import__("sys").modules["odd\ud800"].x is work`, "",
	},
	{
		"keys of a dict", `d = {"\ud800": work, "\udfff": {"\ud801": 1}}`,
		`d["\ud800"] is work and d["\udfff"] == {"\ud801": 1}`, "",
	},
	{
		"fields and members", `import collections, enum
P = collections.namedtuple("P", "a"); p = P("\ud800"); E = enum.Enum("E", {"\ud800": 1, "ok": 2})`,
		`p.a == "\ud800" and [m.name for m in E] == ["\ud800", "ok"]`, "",
	},
	{"a setting that fails when it is compared", evil + `import sys; sys.argv = [Evil(3)]`, `False`, "sys.argv"},
	{
		"names of modules that are no text", `import sys; sys.modules[5] = sys; sys.modules[("a",)] = 7`,
		`False`, "modules made by hand",
	},
	{"a class whose metaclass answers nothing", `class M(type):
    def __getattribute__(cls, name): raise ValueError(name)
class A(metaclass=M): pass`, `False`, "A"},
	{"an object that has no class", `class A:
    __class__ = property(lambda self: 1 / 0)
    def __getattribute__(self, name): raise ValueError(name)
a = A()`, `False`, "a"},
	{"a copy that exits", `class A:
    def __reduce_ex__(self, protocol): raise SystemExit(3)
a = A()`, `False`, "a"},
	{"a copy that ends a generator", `class A:
    def __reduce_ex__(self, protocol): raise GeneratorExit
a = A()`, `False`, "a"},
	{"a copy that raises what is no Exception", `class Other(BaseException): pass
class A:
    def __reduce_ex__(self, protocol): raise Other
a = A()`, `False`, "a"},
	{"a state that exits", `class A:
    def __getstate__(self): return {"x": 1}
    def __setstate__(self, state): raise SystemExit(3)
a = A()`, `False`, "a"},
	{"a copy that removes all names", `class A:
    def __reduce_ex__(self, protocol):
        globals().clear()
        return int, ()
a = A()`, `a == 0`, ""},
	{"copies that are registered for all", `import copyreg
copyreg.dispatch_table = 5`, `True`, ""},
	{"no sources of snippets", `import linecache; linecache.cache = None`, `True`, ""},
	{"odd sources of snippets", `import linecache
linecache.cache["<snippet 1>"] = (1, None, [5], 4); linecache.cache[5] = ()`, `True`, ""},
}

// evil is a class whose instances fail when compared.
const evil = `class Evil:
    def __init__(self, n): self.n = n
    def __hash__(self): return 1
    def __eq__(self, other): raise ValueError("never compare me")
    __ne__ = __eq__
`

// testSpoilers moves sessions after such snippets. All other variables must arrive, and the
// snippet's own values must arrive or be named.
func (s *suite) testSpoilers(t *testing.T) {
	for _, c := range spoilers {
		t.Run(c.name, func(t *testing.T) {
			from, to := s.open(t, emptyConfig()), s.open(t, emptyConfig())
			from.mustRun(t, "work = list(range(1000))")
			from.mustRun(t, c.source)
			if !strings.Contains(c.source, "while True") {
				from.mustRun(t, "more = {'work': work}")
			}

			state, err := asExporter(t, from).Export(t.Context())
			if err != nil {
				t.Fatalf("cannot export: %v", err)
			}
			state.Exact = nil
			report, err := asExporter(t, to).Import(t.Context(), state)
			if err != nil {
				t.Fatalf("cannot import: %v", err)
			}
			checkSpoiler(t, to, c.use, c.names, report)
		})
	}
}

func checkSpoiler(t *testing.T, to *session, use, names string, report tiers.Report) {
	t.Helper()
	isNamed := false
	for _, left := range report.Left {
		isNamed = isNamed || left.Name == names
		if left.Name != names && names != "" || names == "" && left.Reason == "" {
			t.Logf("left behind: %+v", left)
		}
	}
	if names != "" && !isNamed {
		t.Errorf("%q is not named among %+v", names, report.Left)
	}

	r := to.mustRun(t, "print(len(work), globals().get('more', {}).get('work', work) is work)\n"+
		"try: kept = bool("+use+")\nexcept Exception as e: kept = e\nprint(kept)")
	said, kept, _ := strings.Cut(r.Stdout, "\n")
	if said != "1000 True" {
		t.Errorf("the other variables: %q", r.Stdout)
	}
	if names == "" && kept != "True\n" {
		t.Errorf("it is neither kept nor named: %q, %+v", kept, report.Left)
	}
}

// testOddNamesAreShown lists variables whose names are not UTF-8, and checks that the host can
// distinguish them.
func (s *suite) testOddNamesAreShown(t *testing.T) {
	box := s.open(t, emptyConfig())
	r := box.mustRun(t, `globals().update({"\ud800": 1, "\udc80": 2, 5: 3, "plain": 4})`)
	names := map[string]bool{}
	for _, v := range r.Variables {
		names[v.Name] = true
	}
	if !names[`\ud800`] || !names[`\udc80`] || !names["plain"] {
		t.Errorf("the variables are %q", r.Variables)
	}

	r = box.run(t, `raise ValueError("\ud800 \udc80")`)
	if r.Exception == nil || r.Exception.Message != `\ud800 \udc80` ||
		!strings.HasSuffix(r.Exception.Traceback, "ValueError: \\ud800 \\udc80\n") {
		t.Errorf("the exception is %+v", r.Exception)
	}

	r = box.mustRun(t, `FINAL({"\ud800": "\udc80", "\udfff": "é"})`)
	if r.Final == nil || string(r.Final.Value) != `{"\ud800": "\udc80", "\udfff": "é"}` || !json.Valid(r.Final.Value) {
		t.Errorf("the answer is %+v", r.Final)
	}
}
