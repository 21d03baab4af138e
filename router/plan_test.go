package router

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/fourtiers"
	"github.com/rlmhq/rlm/tiers"
)

// four returns the project's tiers, all usable.
func four() []Candidate {
	return []Candidate{
		{Info: fourtiers.Local()},
		{Info: fourtiers.Docker()},
		{Info: fourtiers.Wasm()},
		{Info: fourtiers.Interp()},
	}
}

func needs(imports ...string) Verdict {
	n := &Needs{}
	for i, module := range imports {
		n.Imports = append(n.Imports, Import{Module: module, Line: i + 1})
	}
	return Verdict{Needs: n}
}

func feature(f tiers.Feature, why string, line int) Verdict {
	return Verdict{Needs: &Needs{Features: []FeatureNeed{{Feature: f, Why: why, Line: line}}}}
}

func chain(p Plan) string {
	var names []string
	for _, step := range p.Chain {
		names = append(names, step.Tier)
	}
	return strings.Join(names, " ")
}

func TestALanguageThatIsMissingHereSaysWhy(t *testing.T) {
	docker := fourtiers.Docker()
	docker.Lacks = map[tiers.Language]string{
		tiers.Go: "there is no image: build it\nby rlm images build go",
	}
	plan := Policy{}.Plan(needs("fmt"), []Candidate{{Info: docker}}, Standing{Language: tiers.Go})
	want := "tier docker: does not run the language go on this machine: there is no image: " +
		"build it by rlm images build go"
	if err := plan.Err(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

func TestTheChainIsOrderedByCost(t *testing.T) {
	python := Standing{Language: tiers.Python}
	at := func(home string, bytes int64) Standing {
		return Standing{Language: tiers.Python, Home: home, Bytes: bytes}
	}
	guarded := Verdict{Needs: &Needs{Imports: []Import{{Module: "numpy", Guarded: true, Line: 1}}}}
	unlikely := Verdict{Needs: &Needs{Imports: []Import{{Module: "numpy", Unlikely: true, Line: 1}}}}
	both := feature(tiers.FeatureProcesses, "subprocess.run", 3)
	both.Needs.Imports = needs("torch").Needs.Imports
	for _, c := range []struct {
		name    string
		policy  Policy
		verdict Verdict
		state   Standing
		chain   string
	}{
		{
			"the cheapest first, local never unnamed",
			Policy{},
			needs(), python,
			"interp wasm docker",
		},
		{
			"local when allowed",
			Policy{AllowLocal: true},
			needs(), python,
			"interp wasm local docker",
		},
		{
			"local when listed",
			Policy{Tiers: []string{"local", "wasm"}},
			needs(), python,
			"wasm local",
		},
		{
			"local beside a list",
			Policy{Tiers: []string{"wasm"}, AllowLocal: true},
			needs(),
			python, "wasm local",
		},
		{"a pin", Policy{Pin: "docker"}, needs(), python, "docker"},
		{"a pin may name local", Policy{Pin: "local"}, needs("torch"), python, "local"},
		{
			"least isolation",
			Policy{MinIsolation: tiers.IsolationContainer, AllowLocal: true},
			needs(), python, "wasm docker",
		},
		{
			"a module",
			Policy{AllowLocal: true},
			needs("json", "numpy.linalg"), python,
			"local docker",
		},
		{
			"a module that nobody has is missed where the import is reached",
			Policy{AllowLocal: true},
			needs("nosuch"), python,
			"wasm local docker",
		},
		{
			"one of several modules that nobody has, in the home",
			Policy{AllowLocal: true},
			needs("nosuch"), at("docker", 0),
			"docker wasm local",
		},
		{
			"the tiers that lack the fewest modules",
			Policy{AllowLocal: true},
			needs("numpy", "nosuch"), python,
			"local docker",
		},
		{
			"each module counts once",
			Policy{AllowLocal: true},
			needs("nosuch", "nosuch", "nosuch", "torch"), python,
			"local",
		},
		{
			"a module and a feature that no tier has both",
			Policy{Tiers: []string{"wasm", "docker"}},
			both, python,
			"docker",
		},
		{"a guarded import is no need", Policy{}, guarded, python, "interp wasm docker"},
		{"nor is an unlikely one", Policy{}, unlikely, python, "interp wasm docker"},
		{
			"a feature",
			Policy{},
			feature(tiers.FeatureProcesses, "subprocess.run", 3), python,
			"docker",
		},
		{"classes", Policy{}, feature(tiers.FeatureClasses, "class A", 1), python, "wasm docker"},
		{
			"not understood: whole languages only",
			Policy{},
			Verdict{Unknown: "too deep"},
			python,
			"wasm docker",
		},
		{"no verdict at all", Policy{}, Verdict{}, python, "wasm docker"},
		{
			"allowed modules",
			Policy{Modules: []string{"json"}},
			needs("json"), python,
			"wasm docker",
		},
		{
			"a module that is not allowed",
			Policy{Modules: []string{"json"}},
			needs("json", "re"),
			python, "",
		},
		{"guarded is imported too", Policy{Modules: []string{"json"}}, guarded, python, ""},
		{
			"what is not understood cannot be checked",
			Policy{Modules: []string{"json"}},
			Verdict{Unknown: "x"},
			python, "",
		},
		{"files are wished", Policy{Files: true}, needs(), python, "docker"},
		{"a network is wished", Policy{Network: true, AllowLocal: true}, needs(), python, ""},
		{
			"what the session asks of every tier",
			Policy{AllowLocal: true},
			needs(),
			Standing{Language: tiers.Python, Wants: []tiers.Feature{tiers.FeatureFiles}},
			"local docker",
		},
		{
			"Go",
			Policy{AllowLocal: true},
			needs("fmt", "net/http"),
			Standing{Language: tiers.Go},
			"interp local",
		},
		{
			"Go modules are whole paths",
			Policy{Modules: []string{"net/http"}},
			needs("net/http"),
			Standing{Language: tiers.Go},
			"interp",
		},
		{
			"and not their beginnings",
			Policy{Modules: []string{"net"}},
			needs("net/http"),
			Standing{Language: tiers.Go},
			"",
		},
		{
			"home stays, dear as it is",
			Policy{AllowLocal: true},
			needs(), at("docker", 1<<30),
			"docker interp wasm local",
		},
		{
			"a home that cannot run it is left",
			Policy{AllowLocal: true},
			needs("numpy"),
			at("wasm", 1<<20), "local docker",
		},
		{
			"a sandbox that waits is cheap",
			Policy{Tiers: []string{"wasm", "docker"}},
			needs(),
			Standing{Language: tiers.Python, Open: []string{"docker"}},
			"docker wasm",
		},
		{
			"a fixed home",
			Policy{},
			needs(),
			Standing{Language: tiers.Python, Home: "wasm", Fixed: true},
			"wasm",
		},
		{
			"a rejection",
			Policy{},
			needs(),
			Standing{
				Language: tiers.Python,
				Rejected: []tiers.RejectedError{{Tier: "interp", Reason: "no"}},
			},
			"wasm docker",
		},
		{
			"what was missing is missing elsewhere",
			Policy{AllowLocal: true},
			needs(),
			Standing{
				Language: tiers.Python,
				Rejected: []tiers.RejectedError{{Tier: "wasm", Missing: "torch", Reason: "no"}},
			},
			"local",
		},
		{
			"a missing feature, too",
			Policy{},
			needs(),
			Standing{
				Language: tiers.Python,
				Rejected: []tiers.RejectedError{{Tier: "wasm", Missing: "threads", Reason: "no"}},
			},
			"docker",
		},
		{
			"invalid: home only",
			Policy{},
			Verdict{Invalid: &tiers.Exception{Type: "SyntaxError"}},
			at("wasm", 0), "wasm",
		},
		{
			"invalid: nobody",
			Policy{},
			Verdict{Invalid: &tiers.Exception{Type: "SyntaxError"}},
			python, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := c.policy.Plan(c.verdict, four(), c.state)
			if got := chain(plan); got != c.chain {
				t.Errorf("the chain is %q, want %q\n%s", got, c.chain, plan.Text())
			}
		})
	}
}

func TestTiesGoByTheLightnessOfTheTier(t *testing.T) {
	candidates := four()
	for _, name := range []string{"zeta", "alpha"} {
		other := fourtiers.Wasm()
		other.Name = name
		candidates = append(candidates, Candidate{Info: other})
	}
	for i := range candidates {
		candidates[i].Info.Cost = tiers.Cost{}
	}
	plan := Policy{AllowLocal: true}.Plan(needs(), candidates, Standing{Language: tiers.Python})
	if got := chain(plan); got != "interp alpha wasm zeta docker local" {
		t.Error(got)
	}
}

func TestRefusalsHaveStableReasons(t *testing.T) {
	candidates := four()
	candidates[1].Unusable = errors.New("no daemon answers at /run/docker.sock\nstart it")
	for _, c := range []struct {
		policy  Policy
		verdict Verdict
		state   Standing
		want    string
	}{
		{
			Policy{Tiers: []string{"interp", "docker"}},
			needs("numpy"),
			Standing{Language: tiers.Python},
			`no tier may run the snippet
  tier interp: lacks the module numpy (line 1)
  tier wasm: policy allows only the tiers interp, docker
  tier docker: not usable on this machine: no daemon answers at /run/docker.sock start it
  tier local: policy allows only the tiers interp, docker`,
		},
		{
			Policy{MinIsolation: tiers.IsolationWasm, AllowLocal: true},
			feature(tiers.FeatureProcesses, "subprocess.run", 3),
			Standing{Language: tiers.Python},
			`no tier may run the snippet
  tier interp: isolation process is weaker than the policy's minimum wasm
  tier wasm: the snippet needs processes (subprocess.run, line 3)
  tier docker: isolation container is weaker than the policy's minimum wasm
  tier local: isolation process is weaker than the policy's minimum wasm`,
		},
		{
			Policy{Modules: []string{"math"}},
			needs("os"),
			Standing{Language: tiers.Go},
			`no tier may run the snippet
  tier interp: policy does not allow the module os (line 1)
  tier wasm: does not run the language go
  tier docker: does not run the language go
  tier local: policy does not allow this tier: pass --allow-local`,
		},
		{
			Policy{Pin: "dokcer"},
			needs(),
			Standing{Language: tiers.Python},
			`no tier may run the snippet
  tier interp: policy allows only tier dokcer
  tier wasm: policy allows only tier dokcer
  tier docker: policy allows only tier dokcer
  tier local: policy allows only tier dokcer
  tier dokcer: unknown tier`,
		},
		{
			Policy{Files: true},
			Verdict{Unknown: "too\x1b[1m deep"},
			Standing{Language: tiers.Python, Home: "wasm", Fixed: true},
			`no tier may run the snippet
  tier interp: lacks files, which the policy requires
  tier wasm: lacks files, which the policy requires
  tier docker: not usable on this machine: no daemon answers at /run/docker.sock start it
  tier local: policy does not allow this tier: pass --allow-local`,
		},
		{
			Policy{Tiers: []string{"interp", "wasm", "local"}, Modules: []string{"m"}},
			Verdict{Unknown: "too\x1b[1m deep"},
			Standing{Language: tiers.Python},
			`no tier may run the snippet
  tier interp: the analyser did not understand the snippet (too [1m deep), and this tier does not run the whole language
  tier wasm: the analyser did not understand the snippet (too [1m deep), so the policy's modules cannot be checked
  tier docker: policy allows only the tiers interp, wasm, local
  tier local: the analyser did not understand the snippet (too [1m deep), so the policy's modules cannot be checked`,
		},
		{
			Policy{AllowLocal: true}, needs(), Standing{
				Language: tiers.Python, Home: "interp", Fixed: true,
				Rejected: []tiers.RejectedError{
					{Tier: "interp", Reason: "no"},
					{Tier: "wasm", Reason: "never", Missing: "nosuch"},
				},
			}, `no tier may run the snippet
  tier interp: rejected the snippet: no
  tier wasm: rejected the snippet: never
  tier docker: lacks nosuch, which tier wasm reported missing
  tier local: lacks nosuch, which tier wasm reported missing`,
		},
		{
			Policy{Pin: "wasm"},
			needs(),
			Standing{Language: tiers.Python, Home: "interp", Fixed: true},
			`no tier may run the snippet
  tier interp: policy allows only tier wasm
  tier wasm: the session's variables cannot leave tier interp
  tier docker: policy allows only tier wasm
  tier local: policy allows only tier wasm`,
		},
	} {
		plan := c.policy.Plan(c.verdict, candidates, c.state)
		err := plan.Err()
		var none *NoTierError
		if !errors.Is(err, ErrNoTier) || !errors.As(err, &none) || len(none.Refusals) < 4 ||
			err.Error() != c.want {
			t.Errorf("the error is\n%v\nwant\n%s", err, c.want)
		}
	}
	none := Policy{}.Plan(needs(), nil, Standing{Language: tiers.Python})
	if err := none.Err(); err.Error() != "no tier may run the snippet: there is none" {
		t.Error(err)
	}
}

func TestATierWithoutMovesIsNotMovedTo(t *testing.T) {
	candidates := four()
	candidates[1].Info.Features = []tiers.Feature{tiers.FeatureDynamic}
	home := Standing{Language: tiers.Python, Home: "wasm"}
	plan := Policy{}.Plan(needs("numpy"), candidates, home)
	want := Refusal{Tier: "docker", Reason: "the session's variables cannot move to this tier"}
	if !slices.Contains(plan.Refusals, want) {
		t.Errorf("refusals %v", plan.Refusals)
	}
	plan = Policy{}.Plan(needs("numpy"), candidates, Standing{Language: tiers.Python})
	if got := chain(plan); got != "docker" {
		t.Errorf("at the start of a session the chain is %q", got)
	}
}

func TestAPlanExplainsItself(t *testing.T) {
	v := needs("json", "numpy")
	v.Needs.Imports = append(v.Needs.Imports, Import{Module: "torch", Guarded: true, Line: 3})
	v.Needs.Features = []FeatureNeed{{Feature: tiers.FeatureAsync, Why: "await", Line: 4}}
	home := Standing{Language: tiers.Python, Home: "wasm", Bytes: 10 << 20}
	plan := Policy{AllowLocal: true}.Plan(v, four(), home)
	const text = `language  python
home      wasm
snippet   imports json (line 1); imports numpy (line 2); may import torch (line 3); needs async (await, line 4)

tier    order  cost   why
local   1      125ms  start 20ms, move 105ms
docker  2      505ms  start 400ms, move 105ms
interp  -      -      lacks the module json (line 1)
wasm    -      -      lacks the module numpy (line 2)
`
	if got := plan.Text(); got != text {
		t.Errorf("the text is\n%s\nwant\n%s", got, text)
	}
	got, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	const want = `"chain":[{"tier":"local","run_ns":20000000,"move_ns":105000000},` +
		`{"tier":"docker","run_ns":400000000,"move_ns":105000000}],` +
		`"refusals":[{"tier":"interp","reason":"lacks the module json (line 1)"},` +
		`{"tier":"wasm","reason":"lacks the module numpy (line 2)"}]}`
	lacking := Policy{}.Plan(needs("json", "nosuch"), four(), home)
	if !strings.Contains(lacking.Text(),
		"wasm    1      80µs   home; lacks the module nosuch (line 2): the import will fail\n") {
		t.Errorf("the text is\n%s", lacking.Text())
	}
	if !strings.HasSuffix(string(got), want) ||
		!strings.HasPrefix(string(got), `{"language":"python","home":"wasm","needs":{`) {
		t.Errorf("the JSON is %s", got)
	}
	for _, c := range []struct {
		verdict Verdict
		line    string
	}{
		{Verdict{Unknown: "too deep"}, "not understood: too deep"},
		{
			Verdict{Invalid: &tiers.Exception{Type: "SyntaxError", Message: "bad"}},
			"is not python: SyntaxError: bad",
		},
		{needs(), "needs nothing beyond its language"},
	} {
		plan := Policy{}.Plan(c.verdict, four(), Standing{Language: tiers.Python, Home: "wasm"})
		if !strings.Contains(plan.Text(), "snippet   "+c.line+"\n") ||
			!strings.Contains(plan.Text(), "  home\n") {
			t.Errorf("the text is\n%s", plan.Text())
		}
	}
}

func TestPoliciesThatContradictThemselvesAreRefused(t *testing.T) {
	for _, p := range []Policy{
		{MinIsolation: -1},
		{MinIsolation: tiers.IsolationKernel + 1},
		{Tiers: []string{""}},
		{Modules: []string{""}},
		{Pin: "wasm", Tiers: []string{"docker"}},
	} {
		if p.Validate() == nil {
			t.Errorf("%+v is valid", p)
		}
	}
	if err := (Policy{Pin: "wasm", Tiers: []string{"wasm"}}).Validate(); err != nil {
		t.Error(err)
	}
}

func BenchmarkPlan(b *testing.B) {
	v, candidates := needs("json", "numpy"), four()
	slices.SortFunc(candidates, compareWeight) // in the order that an engine uses
	b.Run("at-home", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Policy{}.Plan(needs("json"), candidates, Standing{Language: tiers.Python, Home: "wasm"})
		}
	})
	b.Run("to-move", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Policy{
				AllowLocal: true,
			}.Plan(v, candidates, Standing{Language: tiers.Python, Home: "wasm", Bytes: 1 << 20})
		}
	})
}
