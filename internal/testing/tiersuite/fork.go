package tiersuite

import (
	"testing"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/tiers"
)

// testFork tests copies of live sandboxes.
func (s *suite) testFork(t *testing.T) {
	t.Run("Diverge", s.testForkDiverges)
	t.Run("Random", s.testForkRandom)
	t.Run("Context", s.testForkContext)
	t.Run("Lifetimes", s.testForkLifetimes)
	t.Run("Closed", s.testForkClosed)
}

func (box *session) testFork(t *testing.T) *session {
	t.Helper()
	f, ok := box.box.(tiers.Forker)
	if !ok {
		t.Fatalf("tier %s names the feature %q, its sandboxes have no Fork", box.info.Name, tiers.FeatureFork)
	}
	copied, err := f.Fork(box.patientContext(t))
	if err != nil {
		t.Fatalf("cannot fork: %v", err)
	}

	t.Cleanup(func() {
		if err := copied.Close(); err != nil {
			t.Errorf("cannot close the copy: %v", err)
		}
	})
	own := *box
	own.box = copied

	return &own
}

func (s *suite) testForkDiverges(t *testing.T) {
	box := s.open(t, newHost().config())
	box.mustRun(t, `import json
rows = [1]
def f(): return rows[-1] / 0 if len(rows) > 2 else rows
class C: n = 5
g = (i for i in range(9))
next(g)`)

	copied := box.testFork(t)
	second := copied.testFork(t)
	box.mustPrint(t, "rows.append('original'); C.n += 1; json.loads = None; print(f(), C.n, next(g))",
		"[1, 'original'] 6 1\n")
	copied.mustPrint(t, "rows.append('copy'); print(f(), C.n, next(g), next(g), json.loads('1'))",
		"[1, 'copy'] 5 1 2 1\n")
	second.mustPrint(t, "print(f(), C.n, next(g), ask('hi'))", "[1] 5 1 re: hi\n")
	third := box.testFork(t)
	third.mustPrint(t, "print(rows, C.n)", "[1, 'original'] 6\n")
	st := step{
		source: "rows.append(0)\nf()", raises: "ZeroDivisionError",
		says: []string{`<snippet 1>", line 3, in f`, "rows[-1] / 0"},
	}

	st.checkResult(t, third.run(t, st.source))
	if s.info.Has(tiers.FeatureAsync) {
		third.mustPrint(t, `import asyncio
print(await asyncio.gather(*[meet(str(i)) for i in range(3)]))`, "['0', '1', '2']\n")
	}
}

// testForkRandom draws random numbers in copies of one state. The numbers must differ.
func (s *suite) testForkRandom(t *testing.T) {
	box := s.open(t, emptyConfig())
	box.mustRun(t, "import random, uuid, secrets\nrandom.random()")
	a, b := box.testFork(t), box.testFork(t)
	const draw = "print(random.random(), uuid.uuid4(), secrets.token_hex(8), random.randint(0, 10 ** 9))"
	seen := map[string]bool{}
	for _, box := range []*session{box, a, b, a.testFork(t)} {
		out := box.mustRun(t, draw).Stdout
		if seen[out] {
			t.Errorf("two copies drew the same: %s", out)
		}
		seen[out] = true
	}

	c, d := s.open(t, emptyConfig()), s.open(t, emptyConfig())
	const first = "import random\nprint(random.random())"
	if x, y := c.mustRun(t, first).Stdout, d.mustRun(t, first).Stdout; x == y {
		t.Errorf("two new sandboxes drew the same: %s", x)
	}
}

func (s *suite) testForkContext(t *testing.T) {
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{makeTextInput(t, "text", "the context é")}})
	box.mustRun(t, "x = context[:3]")
	box.testFork(t).mustPrint(t, "print(x, context, context_0 == context)", "the the context é True\n")
}

// testForkLifetimes closes the original before the copy, and stops a copy.
func (s *suite) testForkLifetimes(t *testing.T) {
	box := s.open(t, tiers.Config{Limits: s.stopLimits()})
	box.mustRun(t, harm.Marked)
	copied := box.testFork(t)
	r := copied.run(t, "while True:\n    try:\n        while True: pass\n    except: pass")
	copied.checkAlive(t)
	copied.checkHonest(t, r)
	box.checkAlive(t)
	if err := box.box.Close(); err != nil {
		t.Fatal(err)
	}

	copied.checkAlive(t)
	copied.testFork(t).checkAlive(t)
}

func (s *suite) testForkClosed(t *testing.T) {
	box := s.open(t, emptyConfig())
	if err := box.box.Close(); err != nil {
		t.Fatal(err)
	}
	if copied, err := box.box.(tiers.Forker).Fork(s.patientContext(t)); err == nil {
		_ = copied.Close() // the test has failed already
		t.Error("a closed sandbox was forked")
	}
}
