package router

import (
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// computes returns the verdict on a snippet that computes for the given time in native code.
func computes(native time.Duration) Verdict {
	return Verdict{Needs: &Needs{Computes: native, ComputesLine: 3}}
}

// slow returns the four tiers, two of which are slow.
func slow() []Candidate {
	all := four()
	for i := range all {
		switch info := &all[i].Info; info.Name {
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
	python := Standing{Language: tiers.Python}
	at := func(home string) Standing {
		return Standing{Language: tiers.Python, Home: home, Bytes: 32 << 20, MaxActive: 30 * second}
	}
	settled, fixed, bounded, huge := at("wasm"), at("wasm"), at("wasm"), at("wasm")
	settled.Settled, fixed.Fixed, bounded.MaxActive, huge.Bytes = true, true, 3*second, 1<<30
	allowed := Policy{Tiers: []string{"wasm", "docker"}}

	for _, c := range []struct {
		name    string
		policy  Policy
		verdict Verdict
		state   Standing
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
			Standing{Language: tiers.Go},
			"local interp",
		},
		{
			"Go, shortly",
			Policy{AllowLocal: true},
			computes(50 * time.Millisecond),
			Standing{Language: tiers.Go},
			"interp local",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := c.policy.Plan(c.verdict, slow(), c.state)
			if got := chain(plan); got != c.chain {
				t.Errorf("%s: the chain is %q, want %q\n%s", c.name, got, c.chain, plan.Text())
			}
		})
	}
}

func TestAPlanExplainsComputing(t *testing.T) {
	state := Standing{Language: tiers.Python, Home: "wasm", Bytes: 10 << 20}
	plan := Policy{}.Plan(computes(4*time.Second), slow(), state)
	const text = `language  python
home      wasm
snippet   computes about 4s natively (line 3)

tier    order  cost       why
docker  1      4.505s     start 400ms, move 105ms, compute 4s
wasm    2      13.60008s  home, compute 13.6s
interp  3      24.1051s   start 100µs, move 105ms, compute 24s
local   -      -          policy does not allow this tier: pass --allow-local
`
	if got := plan.Text(); got != text {
		t.Errorf("the text is\n%s\nwant\n%s", got, text)
	}

	short := Policy{}.Plan(computes(200*time.Millisecond), slow(), state)
	if got := short.Text(); strings.Contains(got, "compute ") ||
		!strings.Contains(got, "computes about 200ms") {
		t.Errorf("the text of a short snippet is\n%s", got)
	}
}
