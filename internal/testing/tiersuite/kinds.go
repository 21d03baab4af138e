package tiersuite

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

const (
	kindsFile = "testdata/kinds.py"
	kindMark  = "# === "
	// oneVersion is the suffix in the names of kinds that can move only within one version of
	// Python.
	oneVersion = ", within one version of Python"
	kindsSince = 11 // the minor version of CPython 3 required by kinds.py
)

// kind is a kind of state: a snippet that creates it, and one that uses it after a move.
type kind struct{ name, make, use string }

func listKinds(t *testing.T, acrossVersions bool) (kinds []kind) {
	t.Helper()
	_, text, _ := strings.Cut(readFixture(t, kindsFile), kindMark)
	for _, part := range strings.Split(text, "\n"+kindMark) {
		name, body, _ := strings.Cut(part, "\n")
		source, use, ok := strings.Cut(body, moveMark)
		if !ok {
			t.Fatalf("the kind %q has one snippet, want two", name)
		}
		if acrossVersions && strings.HasSuffix(name, oneVersion) {
			continue
		}
		kinds = append(kinds, kind{name, source, use})
	}
	return kinds
}

// MoveKinds creates every kind of state in one sandbox and moves them all to another. Each must
// behave as in the original sandbox, and nothing may be left behind.
func MoveKinds(t *testing.T, from, to tiers.Sandbox, acrossVersions bool) {
	t.Helper()
	kinds := listKinds(t, acrossVersions)
	for _, k := range kinds {
		mustRunKind(t, from, k.name, k.make)
	}

	report := moveTo(t, &session{box: from}, &session{box: to})
	if len(report.Left) > 0 {
		t.Errorf("left behind: %+v", report.Left)
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			want := mustRunKind(t, from, k.name, k.use)
			compare(t, "stdout", mustRunKind(t, to, k.name, k.use), want)
		})
	}
}

func mustRunKind(t *testing.T, box tiers.Sandbox, name, source string) string {
	t.Helper()
	r, err := box.Run(t.Context(), tiers.Job{Source: source})
	if err != nil {
		t.Fatalf("cannot run %s: %v", name, err)
	}
	if r.Status != tiers.StatusOK {
		t.Errorf("%s: %s %+v", name, r.Status, r.Exception)
	}
	return r.Stdout
}

// testKinds moves within the tier; a test of the engine moves between tiers.
func (s *suite) testKinds(t *testing.T) {
	if s.opt.PythonMinor != 0 && s.opt.PythonMinor < kindsSince {
		t.Skipf("it needs CPython 3.%d", kindsSince)
	}
	from, to := s.open(t, emptyConfig()), s.open(t, emptyConfig())
	MoveKinds(t, from.box, to.box, false)
}

// testLossesAreNamed moves values that cannot move. The report must name each loss, or count the
// losses by type if there are more than 200, and the rest of the containing value must arrive.
func (s *suite) testLossesAreNamed(t *testing.T) {
	from, to := s.open(t, emptyConfig()), s.open(t, emptyConfig())
	from.mustRun(t, `import collections, hashlib, json
class Odd:
    def __init__(self, n): self.n = n
    def __reduce__(self): return Odd, ()
class Refuses:
    def __setstate__(self, state): raise ValueError('not here')
    def __init__(self): self.x = 1
def fail(value, state): raise ValueError('here')
class Fails:
    def __reduce__(self): return object, (), 1, None, None, fail
fails = [Fails(), 'a text', collections.ChainMap]
after = ['a text', collections.ChainMap, collections.ChainMap({})]
generator = (n for n in range(3))
hashed = hashlib.sha256(b'x')
kept = {'a': 1, generator: 2, 'set': {generator, 3}, 'odd': [Odd(1), 4], 'refuses': [Refuses(), 5], 'hash': [hashed]}
json.dumps = lambda value: 'patched'
many = [(n for n in ()) for n in range(300)]`)

	names, counts := map[string]string{}, map[string]string{}
	for _, left := range moveTo(t, from, to).Left {
		if strings.HasSuffix(left.Name, " more") {
			counts[left.Type] = left.Name
		} else {
			names[left.Name] += left.Type + " "
		}
	}

	for name, kind := range map[string]string{
		"fails": "", "generator": "generator", "hashed": "", "kept": "Odd Refuses",
	} {
		if lost, ok := names[name]; !ok || !strings.Contains(lost, kind) {
			t.Errorf("%s lost %q, want %s", name, names[name], kind)
		}
	}
	if !strings.HasSuffix(counts["generator"], " more") {
		t.Errorf("the counts are %v, want one of generators", counts)
	}
	to.mustPrint(t, "import json\nprint(json.dumps(1))\n"+
		"print(kept['a'], len(kept), len(kept['set']), kept['odd'][1], kept['refuses'][1])\n"+
		"print(len(many), after)",
		"patched\n1 6 2 4 5\n300 ['a text', <class 'collections.ChainMap'>, ChainMap({})]\n")
}
