package tiersuite

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// step is one snippet of a scenario, with its required outcome.
type step struct {
	source string
	// out is the exact stdout.
	out string
	// says are strings that must occur anywhere in the snippet's output: stdout, stderr, the
	// exception's message or its traceback.
	says []string
	// hides are strings that must not occur there.
	hides []string
	// anyOut accepts any stdout.
	anyOut bool
	// status is how the snippet ends; empty means ok.
	status tiers.Status
	// raises is the class of the exception that leaves the snippet; it implies
	// the status.
	raises string
	// final is the answer given, as JSON; empty means none.
	final string
	// named is the final answer's variable.
	named string
}

// scenario is a session's snippets in order.
type scenario struct {
	name  string
	needs tiers.Feature
	since int // the minor version of CPython 3 that it requires
	steps []step
}

// single returns a scenario of one snippet.
func single(name string, st step) scenario { return scenario{name: name, steps: []step{st}} }

// playScenarios runs each scenario in a separate sandbox, or as the scenario specifies.
func (s *suite) playScenarios(t *testing.T, cfg func() tiers.Config, scenarios []scenario) {
	names := make([]string, len(scenarios))
	for i, sc := range scenarios {
		names[i] = sc.name
	}
	try := func(box *session, i int) bool {
		for _, st := range scenarios[i].steps {
			r, err := box.box.Run(t.Context(), tiers.Job{Source: st.source})
			if err != nil || r.Lost != nil || st.findProblem(r) != "" {
				return false
			}
		}
		return true
	}

	s.testEach(t, cfg, names, try, func(t *testing.T, i int) {
		sc := scenarios[i]
		if sc.needs != "" && !s.info.Has(sc.needs) {
			t.Skipf("tier %s has no feature %q", s.info.Name, sc.needs)
		}
		if s.opt.PythonMinor != 0 && s.opt.PythonMinor < sc.since {
			t.Skipf("it needs CPython 3.%d", sc.since)
		}

		box := s.open(t, cfg())
		for _, st := range sc.steps {
			st.checkResult(t, box.run(t, st.source))
		}
	})
}

func emptyConfig() tiers.Config { return tiers.Config{} }

func (st step) checkResult(t *testing.T, r tiers.Result) {
	t.Helper()
	if problem := st.findProblem(r); problem != "" {
		t.Fatalf("%s\nsnippet: %s\n%s", problem, excerpt(st.source), describe(r))
	}
}

func (st step) findProblem(r tiers.Result) string {
	if p := st.findWrongEnding(r); p != "" {
		return p
	}
	if !st.anyOut && len(st.says) == 0 && r.Stdout != st.out {
		return "stdout is not " + quote(st.out)
	}

	everything := r.Stdout + r.Stderr
	if r.Exception != nil {
		everything += r.Exception.Message + r.Exception.Traceback
	}
	for _, want := range st.says {
		if !strings.Contains(everything, want) {
			return "nothing says " + quote(want)
		}
	}

	for _, not := range st.hides {
		if strings.Contains(everything, not) {
			return "the output says " + quote(not)
		}
	}
	return st.findWrongAnswer(r)
}

func (st step) findWrongEnding(r tiers.Result) string {
	want := st.status
	switch {
	case want == "" && st.raises != "":
		want = tiers.StatusRaised
	case want == "":
		want = tiers.StatusOK
	}

	if r.Status != want {
		return "the status is not " + quote(string(want))
	}
	if st.raises != "" && (r.Exception == nil || r.Exception.Type != st.raises) {
		return "the exception is not a " + st.raises
	}

	return ""
}

func (st step) findWrongAnswer(r tiers.Result) string {
	switch {
	case st.final == "" && r.Final != nil:
		return "an answer was given that is none"
	case st.final == "":
		return ""
	case r.Final == nil:
		return "no answer was given, want " + st.final
	case !sameJSON(string(r.Final.Value), st.final):
		return "the answer is not " + st.final
	case r.Final.Name != st.named:
		return "the answer's variable is " + quote(r.Final.Name) + ", not " + quote(st.named)
	}

	return ""
}

func quote(s string) string {
	return strconv.Quote(excerpt(s))
}

// sameJSON compares JSON strings by value, and numbers by their digits.
func sameJSON(a, b string) bool {
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func canonical(s string) ([]byte, error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
