package tiersuite

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/tiers"
)

// session is one sandbox under test.
type session struct {
	*suite
	box   tiers.Sandbox
	brief bool  // its wall limit is so short that a busy machine can use it up
	ran   int   // number of snippets
	kept  int   // the snippet that set the variable of marked
	lost  []int // snippets lost by a repeated snippet
}

// open starts a sandbox that is closed at the end of the test. From then on, the test runs in
// parallel with others, if the tier's options allow it.
func (s *suite) open(t *testing.T, cfg tiers.Config) *session {
	t.Helper()
	s.runBeside(t)
	box, err := s.tier.Open(s.patientContext(t), cfg)
	s.skipRefused(t, err)
	if err != nil {
		t.Fatalf("cannot open a sandbox: %v", err)
	}

	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Errorf("cannot close the sandbox: %v", err)
		}
	})
	return &session{suite: s, box: box, brief: cfg.Limits.Wall > 0 && cfg.Limits.Wall < briefly}
}

// A snippet may wait longer for a processor than a brief limit lets it run. Since that is not the
// tier's fault, a snippet that must complete is repeated; a faulty tier fails each time.
const (
	briefly  = 10 * time.Second
	mostRuns = 5
)

// run runs a snippet, which may end in any way that is a result.
func (s *session) run(t *testing.T, source string) tiers.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.opt.Patience)
	defer cancel()
	r, err := s.tryJob(ctx, t, tiers.Job{Source: source})
	if err != nil {
		t.Fatalf("the tier broke: %v\nsnippet: %s", err, excerpt(source))
	}

	checkForm(t, r)
	return r
}

// mustRun runs a snippet that must complete.
func (s *session) mustRun(t *testing.T, source string) tiers.Result {
	t.Helper()
	r := s.run(t, source)
	for n := 1; n < mostRuns && s.brief && r.Status == tiers.StatusLimit && slices.Contains(timeLimits, r.Limit); n++ {
		if r.Lost != nil {
			s.lost = append(s.lost, r.Lost.Snippets...)
		}
		r = s.run(t, source)
	}

	if source == harm.Marked {
		s.kept = s.ran
	}
	if r.Status != tiers.StatusOK {
		t.Fatalf("status %q, want ok\nsnippet: %s\n%s", r.Status, excerpt(source), describe(r))
	}

	return r
}

// mustPrint runs a snippet that must complete and print exactly want.
func (s *session) mustPrint(t *testing.T, source, want string) {
	t.Helper()
	if r := s.mustRun(t, source); r.Stdout != want {
		t.Fatalf("stdout %q, want %q\nsnippet: %s\n%s", excerpt(r.Stdout), excerpt(want), excerpt(source), describe(r))
	}
}

// checkAlive fails the test if the session cannot run another snippet.
func (s *session) checkAlive(t *testing.T) {
	t.Helper()
	r := s.mustRun(t, `print("alive")`)
	if r.Stdout != "alive\n" || r.Stderr != "" || r.Lost != nil {
		t.Fatalf("the session does not go on as it should\n%s", describe(r))
	}
}

// checkHonest fails the test if a result misreports the session's state: the variable of the first
// snippet must exist, or be reported as lost.
func (s *session) checkHonest(t *testing.T, after tiers.Result) {
	t.Helper()
	r := s.mustRun(t, "try:\n    print(kept == {'since': 'snippet 1'})\nexcept NameError:\n    print('gone')")
	reported := slices.Contains(s.lost, s.kept) || after.Lost != nil && slices.Contains(after.Lost.Snippets, s.kept)
	switch {
	case r.Stdout == "True\n" && reported:
		t.Errorf("snippet %d is reported as lost, and its variable is still there", s.kept)
	case r.Stdout == "gone\n" && !reported:
		t.Errorf("the variable of snippet %d is lost and the result does not say so: %+v", s.kept, after.Lost)
	case r.Stdout != "True\n" && r.Stdout != "gone\n":
		t.Errorf("the variable of snippet %d is damaged: %q", s.kept, r.Stdout)
	}
}

// checkForm checks the invariants of a result.
func checkForm(t *testing.T, r tiers.Result) {
	t.Helper()
	excepted := r.Status == tiers.StatusRaised || r.Status == tiers.StatusExited || r.Status == tiers.StatusCrashed
	switch {
	case !slices.Contains(statuses, r.Status):
		t.Errorf("unknown status %q", r.Status)
	case excepted && r.Exception == nil:
		t.Errorf("status %q without an exception", r.Status)
	case r.Status == tiers.StatusOK && r.Exception != nil:
		t.Errorf("status ok with an exception: %+v", r.Exception)
	case r.Status == tiers.StatusLimit && r.Limit == "":
		t.Error("a limit stopped the snippet and is not named")
	case r.Lost != nil && (len(r.Lost.Snippets) == 0 || r.Lost.Reason == ""):
		t.Errorf("a loss without snippets or reason: %+v", r.Lost)
	case r.Dropped < 0 || r.Dropped > 0 != (r.Usage.OutputBytes > int64(len(r.Stdout)+len(r.Stderr))):
		t.Errorf("%d bytes written, %d kept, %d dropped", r.Usage.OutputBytes, len(r.Stdout)+len(r.Stderr), r.Dropped)
	}
}

var statuses = []tiers.Status{
	tiers.StatusOK, tiers.StatusRaised, tiers.StatusExited, tiers.StatusLimit, tiers.StatusCrashed,
}

// describe formats a result for a failure message.
func describe(r tiers.Result) string {
	var b strings.Builder
	b.WriteString("status " + string(r.Status))
	if r.Limit != "" {
		b.WriteString(", limit " + string(r.Limit))
	}
	if r.Lost != nil {
		b.WriteString(", lost: " + r.Lost.Reason)
	}
	if r.Final != nil {
		b.WriteString(", final " + excerpt(string(r.Final.Value)))
	}

	for _, part := range []struct{ name, text string }{{"stdout", r.Stdout}, {"stderr", r.Stderr}} {
		if part.text != "" {
			b.WriteString("\n" + part.name + ": " + excerpt(part.text))
		}
	}
	if r.Exception != nil {
		b.WriteString("\nexception " + r.Exception.Type + ": " + excerpt(r.Exception.Message) + "\n" +
			excerpt(r.Exception.Traceback))
	}

	return b.String()
}

// excerpt shortens a string for a message, because some snippets are megabytes long.
func excerpt(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return s[:most/2] + "\n[…]\n" + s[len(s)-most/2:]
}
