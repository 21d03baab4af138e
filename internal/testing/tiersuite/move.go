package tiersuite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

const (
	moveDir = "testdata/move"
	// moveMark separates the snippets of a script. The session moves at each mark.
	moveMark = "# --- the next snippet ---\n"
)

// moveSince are the minor versions of CPython 3 that scripts require.
var moveSince = map[string]int{"classes": 11}

// testMove runs each script of testdata/move snippet by snippet, each in a new sandbox to which the
// namespace of the previous one has moved.
func (s *suite) testMove(t *testing.T) {
	for _, name := range pickFew(s, listCases(t, moveDir)) {
		t.Run(name, func(t *testing.T) {
			if s.opt.PythonMinor != 0 && s.opt.PythonMinor < moveSince[name] {
				t.Skipf("it needs CPython 3.%d", moveSince[name])
			}
			s.testMoveScript(t, name)
		})
	}

	t.Run("kinds", s.testKinds)
	t.Run("coverage", s.testCoverageMoves)
	t.Run("losses are named", s.testLossesAreNamed)
	t.Run("left behind", s.testLeftBehind)
	t.Run("exact states", s.testExactStates)
	t.Run("many left behind", s.testManyLeftBehind)
	if !s.opt.KnownProcess {
		t.Run("spoilers", s.testSpoilers)
	}
	t.Run("odd names are shown", s.testOddNamesAreShown)
	t.Run("fails there", s.testFailsThere)
	t.Run("never ends", s.testNeverEnds)
	t.Run("interrupted late", s.testInterruptedLate)
	t.Run("cannot be stopped", s.testUnstoppable)
	t.Run("hostile states", func(t *testing.T) {
		skip.UnderRace(t)
		skip.Short(t, "some of the states end at a limit of time")
		s.testHostileStates(t)
	})
	t.Run("unknown format", func(t *testing.T) {
		_, err := asExporter(t, s.open(t, emptyConfig())).Import(t.Context(), tiers.State{Format: "stone tablet"})
		var rejected *tiers.RejectedError
		if !errors.As(err, &rejected) {
			t.Errorf("a state of an unknown format gives %v, want a rejection", err)
		}
	})
}

func (s *suite) testMoveScript(t *testing.T, name string) {
	cfg := tiers.Config{Limits: tiers.Limits{Output: 10 << 20}}
	box := s.open(t, cfg)
	stdout := ""
	for i, snippet := range strings.Split(readFixture(t, moveDir+"/"+name+".py"), moveMark) {
		if i > 0 {
			next := s.open(t, cfg)
			if report := moveTo(t, box, next); len(report.Left) > 0 {
				t.Errorf("left behind: %+v", report.Left)
			}
			box = next
		}

		stdout += box.mustRun(t, snippet).Stdout
	}

	compare(t, "stdout", stdout, readFixture(t, moveDir+"/"+name+".stdout"))
}

func moveTo(t *testing.T, from, to *session) tiers.Report {
	t.Helper()
	state, err := asExporter(t, from).Export(t.Context())
	if err != nil {
		t.Fatalf("cannot export: %v", err)
	}
	report, err := asExporter(t, to).Import(t.Context(), state)
	if err != nil {
		t.Fatalf("cannot import: %v", err)
	}

	return report
}

// testLeftBehind moves a value that cannot move. The report must name the value, its use must raise
// an exception with an explanation, and everything else must arrive.
func (s *suite) testLeftBehind(t *testing.T) {
	from, to := s.open(t, emptyConfig()), s.open(t, emptyConfig())
	from.mustRun(t, `import math, threading
math.tick = (x for x in ())
gen = (x for x in range(3))
kept = [1, gen, 2]
fine = {'a': 1}
class Odd:
    def __reduce__(self): raise TypeError('no way')
odd = Odd()
lock = threading.Lock()`)

	report := moveTo(t, from, to)
	names := map[string]bool{}
	for _, left := range report.Left {
		names[left.Name] = true
		if left.Reason == "" || left.Type == "" {
			t.Errorf("what was left behind is not explained: %+v", left)
		}
	}

	if !names["gen"] || !names["odd"] || !names["math.tick"] || names["fine"] || names["lock"] {
		t.Errorf("left behind: %+v, want gen, odd and math.tick", report.Left)
	}
	r := to.mustRun(t, "print(fine, kept[0], kept[2], 'left behind' in repr(gen))\nwith lock: print('locked')\n"+
		"for use in (lambda: next(gen), lambda: gen.send(1), lambda: odd.x, lambda: list(kept[1]), "+
		"lambda: len(odd)):\n"+
		"    try: use(); print('used')\n    except RuntimeError as e: print('left behind' in str(e))")

	compare(t, "stdout", r.Stdout, "{'a': 1} 1 2 True\nlocked\n"+strings.Repeat("True\n", 5))
	if r := from.mustRun(t, "print(next(gen))"); r.Stdout != "0\n" {
		t.Errorf("the sandbox that was exported has changed: %q", r.Stdout)
	}
}

func asExporter(t *testing.T, b *session) tiers.Exporter {
	t.Helper()
	e, ok := b.box.(tiers.Exporter)
	if !ok {
		t.Fatal("the tier says that its namespaces move, and its sandboxes are no Exporter")
	}
	return e
}

// testFailsThere moves a value that can be written but not read. Only this value may be lost, and
// other values that share parts must still share them.
func (s *suite) testFailsThere(t *testing.T) {
	from, to := s.open(t, emptyConfig()), s.open(t, emptyConfig())
	from.mustRun(t, `class Once:
    made = 0
    def __init__(self, n):
        self.n = n
        if Once.made: raise ValueError('only once')
`+
		"        Once.made += 1\n    def __reduce__(self): return Once, (['an argument', self.n],)\n"+
		`shared = [1]
before = {'x': shared}
once = Once(1)
after = {'y': shared, 'words': ['a', 'b'], 'z': before}`)

	report := moveTo(t, from, to)
	if len(report.Left) != 1 || report.Left[0].Name != "once" {
		t.Errorf("left behind: %+v, want once alone", report.Left)
	}
	to.mustPrint(t, "shared.append(2)\nprint(before, after, after['z'] is before)",
		"{'x': [1, 2]} {'y': [1, 2], 'words': ['a', 'b'], 'z': {'x': [1, 2]}} True\n")
}

// testNeverEnds moves variables that take forever to write or to read. Each must be left behind
// after its own time limit, and the others must arrive.
func (s *suite) testNeverEnds(t *testing.T) {
	// a busy machine uses up part of a variable's time
	cfg := tiers.Config{Limits: tiers.Limits{Wall: 3 * time.Second}}
	from, to := s.open(t, cfg), s.open(t, cfg)
	from.mustRun(t, "def spin():\n    while True: pass\nclass There:\n    def __reduce__(self): return spin, ()\n"+
		"class Here:\n    def __reduce__(self): return spin()\nshared = [1]\nbefore = shared\n"+
		"here, there = Here(), There()\nafter = [shared]")
	report := moveTo(t, from, to)
	names := map[string]bool{}

	for _, left := range report.Left {
		names[left.Name] = true
		if !strings.Contains(left.Reason, "took longer than") {
			t.Errorf("the reason is not the time: %+v", left)
		}
	}

	if len(names) != 2 || !names["here"] || !names["there"] {
		t.Errorf("left behind: %+v, want here and there", report.Left)
	}
	if report.Moved != 6 {
		t.Errorf("%d variables moved, want 6: what was left behind did not", report.Moved)
	}

	to.mustPrint(t, "print(before is shared is after[0], repr(here)[:18], repr(there)[:19])",
		"True <Here left behind: <value left behind:\n")
	from.mustPrint(t, "print(type(here), after)", "<class '__main__.Here'> [[1]]\n")
}

// testInterruptedLate moves a variable whose time ends just after it has been copied, because a
// profiler slows down the copying. The time limit must not interrupt the following steps.
func (s *suite) testInterruptedLate(t *testing.T) {
	cfg := tiers.Config{Limits: tiers.Limits{Wall: 2 * time.Second}}
	from, to := s.open(t, cfg), s.open(t, cfg)
	from.mustRun(t, `import sys, time
def delay(frame, event, arg):
    if event == 'call' and frame.f_code.co_name == 'name_again':
        sys.setprofile(None)
        end = time.monotonic() + 2.1
        while time.monotonic() < end: pass
class Late:
    def __reduce__(self):
        sys.setprofile(delay)
        return Late, ()
late, after = Late(), [1]`)
	if report := moveTo(t, from, to); len(report.Left) > 0 {
		t.Errorf("left behind: %+v", report.Left)
	}
	to.mustPrint(t, "print(type(late).__name__, after)", "Late [1]\n")
}

// testUnstoppable exports a variable whose C code ignores interrupts. The export must fail, and the
// session must continue without a loss.
func (s *suite) testUnstoppable(t *testing.T) {
	// The limit also applies to the following steps, which may wait long on a busy machine.
	from := s.open(t, tiers.Config{Limits: tiers.Limits{Wall: 5 * time.Second}})
	from.mustRun(t, `import collections, itertools
class Bad:
    def __reduce__(self): collections.deque(itertools.repeat(0), maxlen=0)
kept, bad = [1], Bad()`)
	if _, err := asExporter(t, from).Export(t.Context()); err == nil {
		t.Error("it was exported")
	}

	from.mustPrint(t, "print(kept, type(bad).__name__)\ndel bad", "[1] Bad\n")
	to := s.open(t, emptyConfig())
	moveTo(t, from, to)
	to.mustPrint(t, "print(kept)", "[1]\n")
}

// testManyLeftBehind moves more values that are lost than a report names. The report must count the
// rest by type.
func (s *suite) testManyLeftBehind(t *testing.T) {
	from, to := s.open(t, emptyConfig()), s.open(t, emptyConfig())
	from.mustRun(t, `class Odd:
    def __reduce__(self): raise TypeError("no way")
many = [(x for x in ()) for _ in range(250)]
odds = {n: [n, Odd()] for n in range(30)}
fine = 7`)
	report := moveTo(t, from, to)

	named, counted := map[string]int{}, map[string]string{}
	for _, left := range report.Left {
		if strings.HasSuffix(left.Name, " more") {
			counted[left.Type] = left.Name
			continue
		}
		named[left.Name]++
	}
	if len(report.Left) != 202 || named["many"] != 200 || counted["generator"] != "50 more" ||
		counted["Odd"] != "30 more" {
		t.Errorf("%d lines, %v named, %v counted", len(report.Left), named, counted)
	}
	to.mustPrint(t, `def lost(value):
    try:
        iter(value)
    except Exception as error:
        return "left behind" in str(error)
print(len(many), all(map(lost, many)), [odds[n][0] for n in (0, 29)], all(lost(v[1]) for v in odds.values()), fine)`,
		"250 True [0, 29] True 7\n")
}

// exactExporter is a sandbox that can add an exact state to a portable one.
type exactExporter interface {
	ExportExact(ctx context.Context) (tiers.State, error)
}

// testExactStates restores states with the tier's private addition. An addition that is damaged or
// belongs to another tier must be ignored, so that only the portable state is restored.
func (s *suite) testExactStates(t *testing.T) {
	from := s.open(t, emptyConfig())
	exporter, can := from.box.(exactExporter)
	if !can {
		t.Skip("the tier has portable states only")
	}
	from.mustRun(t, "rows = [1]\nalias = rows\ngen = (n for n in range(3))\nnext(gen)")
	state, err := exporter.ExportExact(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	damaged := slices.Clone(state.Exact)
	if len(damaged) > 0 {
		damaged[len(damaged)/2] ^= 0x55
	}
	for name, exact := range map[string][]byte{
		"whole": state.Exact, "none": nil, "damaged": damaged, "not one": []byte("{}"),
		"cut off": state.Exact[:len(state.Exact)/3], "longer": append(slices.Clone(state.Exact), 0),
	} {
		to, copied := s.open(t, emptyConfig()), state
		copied.Exact = exact
		report, err := asExporter(t, to).Import(t.Context(), copied)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if report.Exact != (name == "whole" && len(exact) > 0) {
			t.Errorf("%s: %+v", name, report)
		}
		to.mustPrint(t, "alias.append(2); print(rows)", "[1, 2]\n")
		if report.Exact {
			to.mustPrint(t, "print(next(gen))", "1\n")
		} else {
			to.mustPrint(t, "print('left behind' in repr(gen))", "True\n")
		}
	}
	from.mustPrint(t, "print(rows, next(gen))", "[1] 1\n")
}
