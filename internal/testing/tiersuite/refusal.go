package tiersuite

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// asRefusal returns err as a rejection, if the tier may reject snippets and this snippet never ran.
// Any other error is treated as in every tier.
func (s *suite) asRefusal(err error) *tiers.RejectedError {
	var broken *tiers.BrokenError
	var rejected *tiers.RejectedError
	if s.opt.MinAccepted == 0 || errors.As(err, &broken) || !errors.As(err, &rejected) ||
		rejected.Effects != tiers.EffectsNeverRan {
		return nil
	}
	return rejected
}

// skipRefused skips the test if err is an allowed rejection.
func (s *suite) skipRefused(t *testing.T, err error) {
	t.Helper()
	if r := s.asRefusal(err); r != nil {
		t.Skip(r)
	}
}

// tryJob runs a job. If the tier may and does reject it, the test is skipped, after a check that
// the session is alive.
func (s *session) tryJob(ctx context.Context, t *testing.T, job tiers.Job) (tiers.Result, error) {
	t.Helper()
	s.share.note(t)
	s.ran++
	r, err := s.box.Run(ctx, job)
	if s.asRefusal(err) != nil {
		after, broken := s.box.Run(s.patientContext(t), tiers.Job{Source: `print("alive")`})
		if broken != nil || after.Stdout != "alive\n" || after.Lost != nil {
			t.Fatalf("the session does not go on after a rejection: %v\n%s", broken, describe(after))
		}
	}

	s.skipRefused(t, err)
	return r, err
}

// testMissing runs rejectable snippets that import a module that no tier has. The tier may reject
// only a snippet that needs the module.
func (s *suite) testMissing(t *testing.T) {
	if s.opt.MinAccepted > 0 {
		t.Skip("the tier rejects what it cannot run before it runs")
	}
	const module = "a_module_that_nobody_has"
	box := s.open(t, emptyConfig())
	for _, source := range []string{
		"import " + module, "from " + module + " import x", "eval('__import__(\"" + module + "\")')",
		"try:\n    import " + module + "\nexcept ValueError:\n    pass",
		"try:\n    import " + module + "\nexcept ImportError:\n    raise",
	} {
		_, err := box.box.Run(s.patientContext(t), tiers.Job{Source: source, Rejectable: true})
		var rejected *tiers.RejectedError
		if !errors.As(err, &rejected) || rejected.Missing != module {
			t.Errorf("%s\n  gives %v, want a rejection for %s", source, err, module)
		}
	}

	for _, source := range []string{
		"try:\n    import " + module + "\nexcept ImportError:\n    pass",
		"try:\n    x = 1\n    import " + module + "\nexcept (KeyError, ModuleNotFoundError) as e:\n    print(e.name)",
		"def f():\n    try:\n        import " + module + "\n    except Exception:\n        return 1\nf()",
		"import importlib.util\nimportlib.util.find_spec('" + module + "')",
		"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import " + module,
		"def g():\n    import " + module,
	} {
		r, err := box.box.Run(s.patientContext(t), tiers.Job{Source: source, Rejectable: true})
		if err != nil || r.Status != tiers.StatusOK {
			t.Errorf("%s\n  gives %v\n%s", source, err, describe(r))
		}
	}
}

// share counts the tests that ran snippets, and how many of them were skipped.
type share struct {
	mu      sync.Mutex
	tests   map[string]struct{}
	skipped int
}

func (c *share) note(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.tests[t.Name()]; known {
		return
	}
	c.tests[t.Name()] = struct{}{}
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if t.Skipped() {
			c.skipped++
		}
	})
}

// testAccepted fails the test if the tier has rejected so many snippets that passing the suite
// means little.
func (s *suite) testAccepted(t *testing.T) {
	c := &s.share
	ran := len(c.tests) - c.skipped
	t.Logf("tier %s ran %d of %d tests with snippets, and rejected a snippet of the others", s.info.Name,
		ran, len(c.tests))
	if ran < s.opt.MinAccepted {
		t.Errorf("tier %s ran %d tests, and must run %d at least", s.info.Name, ran, s.opt.MinAccepted)
	}
}
