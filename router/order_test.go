package router

import (
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// computes is the verdict on a snippet that computes for so long in native code.
func computes(native time.Duration) Verdict {
	return Verdict{Needs: &Needs{Computes: native, ComputesLine: 3}}
}

// slow are the four tiers, of which two are slow.
func slow() []candidate {
	all := four()
	for i := range all {
		switch info := &all[i].info; info.Name {
		case "interp":
			info.Cost.Slowdown = map[tiers.Language]float64{tiers.Python: 6, tiers.Go: 30}
		case "wasm":
			info.Cost.Slowdown = map[tiers.Language]float64{tiers.Python: 3.4}
		}
	}
	return all
}

func TestLongComputingGoesToAFasterTier(t *testing.T) {
	const second = time.Second
	python := standing{language: tiers.Python}
	at := func(home string) standing {
		return standing{language: tiers.Python, home: home, bytes: 32 << 20, maxActive: 30 * second}
	}
	settled, fixed, bounded, huge := at("wasm"), at("wasm"), at("wasm"), at("wasm")
	settled.settled, fixed.fixed, bounded.maxActive, huge.bytes = true, true, 3*second, 1<<30
	allowed := Policy{Tiers: []string{"wasm", "docker"}}

	for _, c := range []struct {
		name    string
		policy  Policy
		verdict Verdict
		state   standing
		chain   string
	}{
		{"nothing is known", Policy{}, needs(), python, "interp wasm docker"},
		{"shortly", Policy{}, computes(300 * time.Millisecond), python, "interp wasm docker"},
		{"for long", Policy{}, computes(4 * second), python, "docker wasm interp"},
		{
			"no faster tier is allowed",
			Policy{Tiers: []string{"wasm"}},
			computes(60 * second),
			python, "wasm",
		},
		{
			"the walls of faster tiers are too weak",
			Policy{MinIsolation: tiers.IsolationWasm},
			computes(60 * second), python, "wasm",
		},
		{
			"local is not named",
			Policy{Tiers: []string{"interp", "wasm"}},
			computes(60 * second),
			python, "interp wasm",
		},
		{
			"local is named",
			Policy{AllowLocal: true},
			computes(4 * second), python,
			"local docker wasm interp",
		},
		{"it must be pinned", Policy{Pin: "wasm"}, computes(60 * second), python, "wasm"},

		{"at home, shortly", allowed, computes(500 * time.Millisecond), at("wasm"), "wasm docker"},
		{
			"at home, and the gain is not double", allowed, computes(700 * time.Millisecond),
			at("wasm"), "wasm docker",
		},
		{"at home, for long", allowed, computes(4 * second), at("wasm"), "docker wasm"},
		{
			"at home, and a move would take longer", allowed, computes(2 * second), huge,
			"wasm docker",
		},
		{"at home, which is native", allowed, computes(60 * second), at("docker"), "docker wasm"},
		{"a move failed before", allowed, computes(4 * second), settled, "wasm docker"},
		{"it cannot move", allowed, computes(4 * second), fixed, "wasm"},
		{"no tier gets to the end", allowed, computes(4 * second), bounded, "wasm docker"},
		{
			"only the faster tier gets to the end", allowed, computes(20 * second), at("wasm"),
			"docker wasm",
		},
		{
			"Go",
			Policy{AllowLocal: true},
			computes(second),
			standing{language: tiers.Go},
			"local interp",
		},
		{
			"Go, shortly",
			Policy{AllowLocal: true},
			computes(50 * time.Millisecond),
			standing{language: tiers.Go},
			"interp local",
		},
	} {
		plan := c.policy.plan(c.verdict, slow(), c.state)
		if got := chain(plan); got != c.chain {
			t.Errorf("%s: the chain is %q, want %q\n%s", c.name, got, c.chain, plan.Text())
		}
	}
}

func TestAPlanExplainsComputing(t *testing.T) {
	state := standing{language: tiers.Python, home: "wasm", bytes: 10 << 20}
	plan := Policy{}.plan(computes(4*time.Second), slow(), state)
	const text = `language  python
home      wasm
snippet   computes about 4s natively (line 3)

tier    order  cost       why
docker  1      4.505s     start 400ms, move 105ms, compute 4s
wasm    2      13.60008s  home, compute 13.6s
interp  3      24.1051s   start 100µs, move 105ms, compute 24s
local   -      -          policy does not allow this tier: pass --allow-local, or set AllowLocal
`
	if got := plan.Text(); got != text {
		t.Errorf("the text is\n%s\nwant\n%s", got, text)
	}

	short := Policy{}.plan(computes(200*time.Millisecond), slow(), state)
	if got := short.Text(); strings.Contains(got, "compute ") ||
		!strings.Contains(got, "computes about 200ms") {
		t.Errorf("the text of a short snippet is\n%s", got)
	}
}

var errRejected = &tiers.RejectedError{Reason: "another Python"}

// TestAFasterTierIsNotWorthALoss has a snippet that computes for long meet a faster tier
// which cannot take all variables, breaks, or is unusable: it stays at home.
func TestAFasterTierIsNotWorthALoss(t *testing.T) {
	left := []tiers.Left{{Name: "g", Type: "generator", Reason: "it runs"}}
	for name, spoil := range map[string]func(wasm, docker *fake){
		"a variable cannot leave":   func(wasm, _ *fake) { wasm.left = left },
		"the tier does not open":    func(_, docker *fake) { docker.opens = errBroken },
		"the tier takes no state":   func(_, docker *fake) { docker.imp = errBroken },
		"the tier rejects the move": func(_, docker *fake) { docker.imp = errRejected },
	} {
		wasm, docker := newWasm(), newDocker()
		wasm.info.Cost.Slowdown = map[tiers.Language]float64{tiers.Python: 3.4}
		s := start(t, RunnerConfig{}, wasm, docker)
		s.in("wasm", "set x 1", "")
		spoil(wasm, docker)

		result := s.in("wasm", "# computes 4s\nshow x", "1\n")
		if len(result.Attempts) != 0 || result.Moved != nil {
			t.Errorf("%s: attempts %v, moved %v", name, result.Attempts, result.Moved)
		}
		opened := docker.opened
		s.in("wasm", "# computes 4s\nshow x", "1\n")
		if docker.opened != opened {
			t.Errorf("%s: the next snippet tries again", name)
		}
	}
}

func TestANamespaceMovesForSpeed(t *testing.T) {
	wasm, docker := newWasm(), newDocker()
	wasm.info.Cost.Slowdown = map[tiers.Language]float64{tiers.Python: 3.4}
	s := start(t, RunnerConfig{}, wasm, docker)
	s.in("wasm", "set x 1", "")
	result := s.in("docker", "# computes 4s\nshow x", "1\n")
	if result.Moved == nil || result.Moved.From != "wasm" || result.Moved.Report.Moved != 1 {
		t.Errorf("moved: %+v", result.Moved)
	}
	s.in("docker", "show x", "1\n") // it stays where it is
}

// TestABrokenFasterTierIsPassedOver has the first snippet of a session choose a tier for
// its speed that does not open.
func TestABrokenFasterTierIsPassedOver(t *testing.T) {
	wasm, docker := newWasm(), newDocker()
	wasm.info.Cost.Slowdown = map[tiers.Language]float64{tiers.Python: 3.4}
	docker.opens = errBroken
	s := start(t, RunnerConfig{}, wasm, docker)
	s.in("wasm", "# computes 4s\nprint 1", "1\n")
}
