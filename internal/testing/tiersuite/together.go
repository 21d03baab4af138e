package tiersuite

import (
	"testing"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/tiers"
)

// In a tier that starts slowly, cases that leave a sandbox intact share a sandbox; see
// Options.ShareSandboxes. This proves as much, because a case that fails there runs again in a
// separate sandbox, and that run decides.

// remember is code that records the names in the namespace; tidy deletes later names.
const (
	remember = "__import__('sys').modules['_before'] = set(globals())"
	tidy     = "(lambda g, keep: [g.pop(n) for n in list(g) if n not in keep])" +
		"(globals(), __import__('sys').modules['_before'])\nNone"
)

// runTogether runs cases in one sandbox, with a new one after each failure, and returns those that
// passed.
func (s *suite) runTogether(t *testing.T, cfg tiers.Config, n int, try func(box *session, i int) bool) []bool {
	t.Helper()
	passed := make([]bool, n)
	var box *session
	for i := range passed {
		if box == nil {
			box = s.open(t, cfg)
			box.mustRun(t, remember)
		}
		if passed[i] = try(box, i); passed[i] {
			r, err := box.box.Run(s.patientContext(t), tiers.Job{Source: tidy})
			passed[i] = err == nil && r.Status == tiers.StatusOK && r.Lost == nil
		}

		if !passed[i] {
			if err := box.box.Close(); err != nil {
				t.Errorf("cannot close the sandbox: %v", err)
			}
			box = nil
		}
	}

	return passed
}

// testEach runs a test for each case. Cases that pass together need no separate sandbox.
func (s *suite) testEach(t *testing.T, cfg func() tiers.Config, names []string, try func(box *session, i int) bool,
	alone func(t *testing.T, i int),
) {
	t.Helper()
	passed := make([]bool, len(names))
	if s.opt.ShareSandboxes {
		passed = s.runTogether(t, cfg(), len(names), try)
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			if passed[i] {
				t.Log("passed in a sandbox that it shared")
				return
			}
			if !s.opt.ShareSandboxes {
				s.runParallel(t)
			}

			alone(t, i)
		})
	}
}

// testEachExcess runs a test for each row, in a separate sandbox. If the tier's options allow it,
// the test uses the sandbox of the previous row, provided that the row lost nothing.
func (s *suite) testEachExcess(t *testing.T, l tiers.Limits, rows []excess,
	test func(t *testing.T, box *session, row excess) tiers.Result,
) {
	t.Helper()
	rows = pickFew(s, rows)
	open := func(t *testing.T) *session {
		box := s.open(t, tiers.Config{Limits: l})
		box.mustRun(t, harm.Marked)
		return box
	}

	if !s.opt.ShareSandboxes {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				if l.Wall == 0 { // otherwise, the other tests would use up its time
					s.runParallel(t)
				}
				test(t, open(t), row)
			})
		}
		return
	}

	var box *session
	for _, row := range rows {
		if box == nil {
			box = open(t)
		}
		intact := false
		t.Run(row.name, func(t *testing.T) {
			intact = test(t, box, row).Lost == nil && !t.Failed()
		})

		if !intact {
			if err := box.box.Close(); err != nil {
				t.Errorf("cannot close the sandbox: %v", err)
			}
			box = nil
		}
	}
}

// pickFew returns one in three of the rows if another tier runs all of them in the same process.
func pickFew[T any](s *suite, rows []T) []T {
	if !s.opt.KnownProcess {
		return rows
	}
	return pickInTurn(rows, 0, 3)
}
