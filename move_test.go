package rlm_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// movable makes the values that must survive a move between tiers and versions of Python.
const movable = `import dataclasses, enum, collections, functools, math
class Base:
    count = 0
    def __init__(self, n): self.n = n; type(self).count += 1
    def double(self): return self.n * 2
class Child(Base):
    def double(self): return super().double() + 1
c = Child(5)
def counter():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    return up
up = counter()
up()
shared = [1, 2]
first, second = {'s': shared}, [shared, shared]
@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    def norm(self): return math.hypot(self.x, self.y)
p = Point(3, 4)
class Colour(enum.Enum):
    RED = 1
    GREEN = 2
    def nice(self): return self.name.lower()
red = Colour.RED
pair = collections.namedtuple('Pair', 'a b')(1, 2)
half = functools.partial(lambda a, b: a / b, 3)
@functools.lru_cache(None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
big, text, raw = 7 ** 99, 'é\ud800', bytes(range(9))`

// moved uses the values of movable. Apart from the closure's state, it changes nothing that affects
// a later use.
const moved = `shared.append(len(shared))
print(c.n, c.double(), isinstance(c, Base), Child.__mro__[1] is Base, Base(1).n, up())
print(first['s'] is second[0] is second[1] is shared, len(shared))
print(p, p.norm(), p == Point(3, 4), hash(p) == hash(Point(3, 4)), dataclasses.replace(p, x=1))
print(red is Colour.RED, Colour(2).nice(), list(Colour), pair.a, half(2), fib(30))
print(big == 7 ** 99, text == 'é\ud800', raw == bytes(range(9)))`

func wantMoved(ups, length int) string {
	return fmt.Sprintf(
		"5 11 True True 1 %d\nTrue %d\nPoint(x=3, y=4) 5.0 True True Point(x=1, y=4)\n"+
			"True green [<Colour.RED: 1>, <Colour.GREEN: 2>] 1 1.5 832040\nTrue True True\n",
		ups,
		length,
	)
}

func TestASessionMovesToAnotherTierAndBack(t *testing.T) {
	webassembly := wasm.New(wasm.Options{CacheDir: testcache.Dir()})
	t.Cleanup(func() { _ = webassembly.Close() })
	tiertest.Require(t, wasm.Name, webassembly.Probe(t.Context()))
	isColon := func(r rune) bool { return r == ':' }
	old := strings.FieldsFunc(os.Getenv("RLM_OLD_PYTHONS"), isColon)
	for _, python := range append([]string{"/usr/bin/python3"}, old...) {
		t.Run(python, func(t *testing.T) {
			native := local.New(local.Options{Python: python, Warm: -1})
			t.Cleanup(func() { _ = native.Close() })
			tiertest.Require(t, local.Name, native.Probe(t.Context()))
			from := openIn(t, webassembly)
			runIn(t, from, movable)
			if got := runIn(t, from, moved); got != wantMoved(2, 3) {
				t.Fatalf("in wasm:\n%s", got)
			}
			there := openIn(t, native)
			if left := moveBetween(t, from, there); len(left) > 0 {
				t.Errorf("left behind on the way there: %+v", left)
			}
			if got := runIn(t, there, moved); got != wantMoved(3, 4) {
				t.Errorf("in local:\n%s", got)
			}
			back := openIn(t, webassembly)
			if left := moveBetween(t, there, back); len(left) > 0 {
				t.Errorf("left behind on the way back: %+v", left)
			}
			if got := runIn(t, back, moved); got != wantMoved(4, 5) {
				t.Errorf("back in wasm:\n%s", got)
			}
		})
	}
}

// TestAllKindsOfStateMoveBetweenTiers moves values of each kind from wasm to local, and back.
func TestAllKindsOfStateMoveBetweenTiers(t *testing.T) {
	webassembly := wasm.New(wasm.Options{CacheDir: testcache.Dir()})
	native := local.New(local.Options{Python: "/usr/bin/python3", Warm: -1})
	t.Cleanup(func() { _, _ = webassembly.Close(), native.Close() })
	tiertest.Require(t, wasm.Name, webassembly.Probe(t.Context()))
	tiertest.Require(t, local.Name, native.Probe(t.Context()))

	t.Run("to local", func(t *testing.T) {
		tiersuite.MoveKinds(t, openIn(t, webassembly), openIn(t, native), true)
	})
	t.Run("to wasm", func(t *testing.T) {
		tiersuite.MoveKinds(t, openIn(t, native), openIn(t, webassembly), true)
	})
}

// TestALongContextIsAStrInEachTier moves a session whose variables are parts of its context.
func TestALongContextIsAStrInEachTier(t *testing.T) {
	webassembly := wasm.New(wasm.Options{CacheDir: testcache.Dir()})
	native := local.New(local.Options{Python: "/usr/bin/python3", Warm: -1})
	t.Cleanup(func() { _, _ = webassembly.Close(), native.Close() })
	tiertest.Require(t, wasm.Name, webassembly.Probe(t.Context()))
	tiertest.Require(t, local.Name, native.Probe(t.Context()))

	text, err := bigtext.Open(file(t, "long.txt", strings.Repeat("é", longText)+strings.Repeat("x", longText)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = text.Close() })
	in := tiers.Input{Name: "long.txt", Text: text}

	const look = `import json
print(isinstance(context, str), isinstance(part, str), len(part), part == context[5:-5], kept == context)
print(json.dumps(part)[-3:], {part: 7}[context[5:-5]], "".join(reversed(narrow))[:3], part.path)
print(narrow == context[-99:])`
	const looked = "True True 16777208 True True\nxx\" 7 xxx None\nTrue\n"
	from := openIn(t, webassembly, in)
	runIn(t, from, "part, narrow, kept = context[5:-5], context[-99:], context")
	if got := runIn(t, from, look); got != looked {
		t.Errorf("in wasm:\n%s", got)
	}
	for _, to := range []tiers.Tier{native, webassembly, native} {
		next := openIn(t, to, in)
		if left := moveBetween(t, from, next); len(left) > 0 {
			t.Errorf("left behind on the way to %s: %+v", to.Info().Name, left)
		}
		if got := runIn(t, next, look); got != looked {
			t.Errorf("in %s:\n%s", to.Info().Name, got)
		}
		from = next
	}
}

// TestMovesToAnOlderPythonReportLosses moves code whose syntax requires Python 3.12.
func TestMovesToAnOlderPythonReportLosses(t *testing.T) {
	webassembly := wasm.New(wasm.Options{CacheDir: testcache.Dir()})
	native := local.New(local.Options{Python: "/usr/bin/python3", Warm: -1})
	t.Cleanup(func() { _, _ = webassembly.Close(), native.Close() })
	tiertest.Require(t, wasm.Name, webassembly.Probe(t.Context()))
	tiertest.Require(t, local.Name, native.Probe(t.Context()))
	if version := native.Info().Version; !older(version) {
		t.Skipf("%s has the syntax", version)
	}
	from, to := openIn(t, webassembly), openIn(t, native)
	runIn(
		t,
		from,
		"def modern[T](x: T) -> T: return x\nclass Box[T]:\n    def get(self): return 1\nspace "+
			"= {}\nexec('def made(): return 5', space)\nmade = space['made']\ndel space\nfine = [1]",
	)
	var names []string
	for _, left := range moveBetween(t, from, to) {
		names = append(names, left.Name)
		if left.Reason == "" {
			t.Errorf("no reason: %+v", left)
		}
	}
	for _, name := range []string{"modern", "made"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not reported: %q", name, names)
		}
	}
	if got := runIn(t, to, "print(fine, 'left behind' in repr(modern))"); got != "[1] True\n" {
		t.Error(got)
	}
}

func older(version string) bool {
	minor := 0
	_, err := fmt.Sscanf(version, "CPython 3.%d", &minor)
	return err == nil && minor < 12
}

func openIn(t *testing.T, tier tiers.Tier, inputs ...tiers.Input) tiers.Sandbox {
	t.Helper()
	box, err := tier.Open(t.Context(), tiers.Config{Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

func runIn(t *testing.T, box tiers.Sandbox, source string) string {
	t.Helper()
	r, err := box.Run(t.Context(), tiers.Job{Source: source})
	if err != nil || r.Status != tiers.StatusOK {
		t.Fatalf("%v %s %+v", err, r.Status, r.Exception)
	}
	return r.Stdout
}

func moveBetween(t *testing.T, from, to tiers.Sandbox) []tiers.Left {
	t.Helper()
	source, ok := from.(tiers.Exporter)
	target, okay := to.(tiers.Exporter)
	if !ok || !okay {
		t.Fatal("a sandbox is not an Exporter")
	}
	state, err := source.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report, err := target.Import(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	return report.Left
}
