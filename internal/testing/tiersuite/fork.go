package tiersuite

import (
	"testing"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/tiers"
)

// fork tests copies of live sandboxes.
func (s *suite) fork(t *testing.T) {
	t.Run("Diverge", s.forkDiverges)
	t.Run("Random", s.forkRandom)
	t.Run("Context", s.forkContext)
	t.Run("Lifetimes", s.forkLifetimes)
	t.Run("Closed", s.forkClosed)
}

func (box *session) fork(t *testing.T) *session {
	t.Helper()
	f, ok := box.box.(tiers.Forker)
	if !ok {
		t.Fatalf("tier %s names the feature %q, its sandboxes have no Fork", box.info.Name, tiers.FeatureFork)
	}
	copied, err := f.Fork(box.patient(t))
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

func (s *suite) forkDiverges(t *testing.T) {
	box := s.open(t, newHost().config())
	box.ok(t, `import json
rows = [1]
def f(): return rows[-1] / 0 if len(rows) > 2 else rows
class C: n = 5
g = (i for i in range(9))
next(g)`)

	copied := box.fork(t)
	second := copied.fork(t)
	box.prints(t, "rows.append('original'); C.n += 1; json.loads = None; print(f(), C.n, next(g))",
		"[1, 'original'] 6 1\n")
	copied.prints(t, "rows.append('copy'); print(f(), C.n, next(g), next(g), json.loads('1'))", "[1, 'copy'] 5 1 2 1\n")
	second.prints(t, "print(f(), C.n, next(g), ask('hi'))", "[1] 5 1 re: hi\n")
	third := box.fork(t)
	third.prints(t, "print(rows, C.n)", "[1, 'original'] 6\n")
	st := step{
		source: "rows.append(0)\nf()", raises: "ZeroDivisionError",
		says: []string{`<snippet 1>", line 3, in f`, "rows[-1] / 0"},
	}

	st.check(t, third.run(t, st.source))
	if s.info.Has(tiers.FeatureAsync) {
		third.prints(t, `import asyncio
print(await asyncio.gather(*[meet(str(i)) for i in range(3)]))`, "['0', '1', '2']\n")
	}
}

// forkRandom draws from copies of one state: they must not agree.
func (s *suite) forkRandom(t *testing.T) {
	box := s.open(t, bare())
	box.ok(t, "import random, uuid, secrets\nrandom.random()")
	a, b := box.fork(t), box.fork(t)
	const draw = "print(random.random(), uuid.uuid4(), secrets.token_hex(8), random.randint(0, 10 ** 9))"
	seen := map[string]bool{}
	for _, box := range []*session{box, a, b, a.fork(t)} {
		out := box.ok(t, draw).Stdout
		if seen[out] {
			t.Errorf("two copies drew the same: %s", out)
		}
		seen[out] = true
	}

	c, d := s.open(t, bare()), s.open(t, bare())
	const first = "import random\nprint(random.random())"
	if x, y := c.ok(t, first).Stdout, d.ok(t, first).Stdout; x == y {
		t.Errorf("two new sandboxes drew the same: %s", x)
	}
}

func (s *suite) forkContext(t *testing.T) {
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{textInput(t, "text", "the context é")}})
	box.ok(t, "x = context[:3]")
	box.fork(t).prints(t, "print(x, context, context_0 == context)", "the the context é True\n")
}

// forkLifetimes closes the original before the copy, and stops a copy.
func (s *suite) forkLifetimes(t *testing.T) {
	box := s.open(t, tiers.Config{Limits: s.stopping()})
	box.ok(t, harm.Marked)
	copied := box.fork(t)
	r := copied.run(t, "while True:\n    try:\n        while True: pass\n    except: pass")
	copied.alive(t)
	copied.honest(t, r)
	box.alive(t)
	if err := box.box.Close(); err != nil {
		t.Fatal(err)
	}

	copied.alive(t)
	copied.fork(t).alive(t)
}

func (s *suite) forkClosed(t *testing.T) {
	box := s.open(t, bare())
	if err := box.box.Close(); err != nil {
		t.Fatal(err)
	}
	if copied, err := box.box.(tiers.Forker).Fork(s.patient(t)); err == nil {
		_ = copied.Close() // the test has failed already
		t.Error("a closed sandbox was forked")
	}
}
