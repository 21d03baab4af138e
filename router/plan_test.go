package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// four are the project's tiers, all usable.
func four() []Candidate {
	return []Candidate{
		{Info: newLocal().info},
		{Info: newDocker().info},
		{Info: newWasm().info},
		{Info: newInterp().info},
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
	return Verdict{Needs: &Needs{Features: []FeatureNeed{{f, why, line}}}}
}

func chain(p Plan) string {
	var names []string
	for _, step := range p.Chain {
		names = append(names, step.Tier)
	}
	return strings.Join(names, " ")
}

func TestALanguageThatIsMissingHereSaysWhy(t *testing.T) {
	docker := newDocker().info
	docker.Lacks = map[tiers.Language]string{tiers.Go: "there is no image: build it\nby rlm images build go"}
	plan := Policy{}.Plan(needs("fmt"), []Candidate{{Info: docker}}, State{Language: tiers.Go})
	want := "tier docker: does not run the language go here: there is no image: build it by rlm images build go"
	if err := plan.Err(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

func TestTheChainIsOrderedByCost(t *testing.T) {
	python := State{Language: tiers.Python}
	at := func(home string, bytes int64) State {
		return State{Language: tiers.Python, Home: home, Bytes: bytes}
	}
	guarded := Verdict{Needs: &Needs{Imports: []Import{{Module: "numpy", Guarded: true, Line: 1}}}}
	for _, c := range []struct {
		name    string
		policy  Policy
		verdict Verdict
		state   State
		chain   string
	}{
		{"the cheapest first, local never unnamed", Policy{}, needs(), python, "interp wasm docker"},
		{"local when allowed", Policy{AllowLocal: true}, needs(), python, "interp wasm local docker"},
		{"local when listed", Policy{Tiers: []string{"local", "wasm"}}, needs(), python, "wasm local"},
		{"local beside a list", Policy{Tiers: []string{"wasm"}, AllowLocal: true}, needs(), python, "wasm local"},
		{"a pin", Policy{Pin: "docker"}, needs(), python, "docker"},
		{"a pin may name local", Policy{Pin: "local"}, needs("torch"), python, "local"},
		{"least isolation", Policy{MinIsolation: tiers.IsolationContainer, AllowLocal: true}, needs(), python, "wasm docker"},
		{"a module", Policy{AllowLocal: true}, needs("json", "numpy.linalg"), python, "local docker"},
		{"a module that nobody has", Policy{AllowLocal: true}, needs("nosuch"), python, ""},
		{"a guarded import is no need", Policy{}, guarded, python, "interp wasm docker"},
		{"a feature", Policy{}, feature(tiers.FeatureProcesses, "subprocess.run", 3), python, "docker"},
		{"classes", Policy{}, feature(tiers.FeatureClasses, "class A", 1), python, "wasm docker"},
		{"not understood: whole languages only", Policy{}, Verdict{Unknown: "too deep"}, python, "wasm docker"},
		{"no verdict at all", Policy{}, Verdict{}, python, "wasm docker"},
		{"allowed modules", Policy{Modules: []string{"json"}}, needs("json"), python, "wasm docker"},
		{"a module that is not allowed", Policy{Modules: []string{"json"}}, needs("json", "re"), python, ""},
		{"guarded is imported too", Policy{Modules: []string{"json"}}, guarded, python, ""},
		{"what is not understood cannot be checked", Policy{Modules: []string{"json"}}, Verdict{Unknown: "x"}, python, ""},
		{"files are wished", Policy{Files: true}, needs(), python, "docker"},
		{"a network is wished", Policy{Network: true, AllowLocal: true}, needs(), python, ""},
		{"what the session asks of every tier", Policy{AllowLocal: true}, needs(), State{Language: tiers.Python, Wants: []tiers.Feature{tiers.FeatureFiles}}, "local docker"},
		{"Go", Policy{AllowLocal: true}, needs("fmt", "net/http"), State{Language: tiers.Go}, "interp local"},
		{"Go modules are whole paths", Policy{Modules: []string{"net/http"}}, needs("net/http"), State{Language: tiers.Go}, "interp"},
		{"and not their beginnings", Policy{Modules: []string{"net"}}, needs("net/http"), State{Language: tiers.Go}, ""},
		{"home stays, dear as it is", Policy{AllowLocal: true}, needs(), at("docker", 1<<30), "docker interp wasm local"},
		{"a home that cannot run it is left", Policy{AllowLocal: true}, needs("numpy"), at("wasm", 1<<20), "local docker"},
		{"a sandbox that waits is cheap", Policy{Tiers: []string{"wasm", "docker"}}, needs(), State{Language: tiers.Python, Open: []string{"docker"}}, "docker wasm"},
		{"a fixed home", Policy{}, needs(), State{Language: tiers.Python, Home: "wasm", Fixed: true}, "wasm"},
		{"a rejection", Policy{}, needs(), State{Language: tiers.Python, Rejected: []tiers.RejectedError{{Tier: "interp", Reason: "no"}}}, "wasm docker"},
		{"what was missing is missing elsewhere", Policy{AllowLocal: true}, needs(), State{Language: tiers.Python, Rejected: []tiers.RejectedError{{Tier: "wasm", Missing: "torch", Reason: "no"}}}, "local"},
		{"a missing feature, too", Policy{}, needs(), State{Language: tiers.Python, Rejected: []tiers.RejectedError{{Tier: "wasm", Missing: "threads", Reason: "no"}}}, "docker"},
		{"invalid: home only", Policy{}, Verdict{Invalid: &tiers.Exception{Type: "SyntaxError"}}, at("wasm", 0), "wasm"},
		{"invalid: nobody", Policy{}, Verdict{Invalid: &tiers.Exception{Type: "SyntaxError"}}, python, ""},
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
		other := newWasm().info
		other.Name = name
		candidates = append(candidates, Candidate{Info: other})
	}
	for i := range candidates {
		candidates[i].Info.Cost = tiers.Cost{}
	}
	if got := chain(Policy{AllowLocal: true}.Plan(needs(), candidates, State{Language: tiers.Python})); got != "interp wasm docker local alpha zeta" {
		t.Error(got)
	}
}

func TestRefusalsHaveStableReasons(t *testing.T) {
	candidates := four()
	candidates[1].Unusable = errors.New("no daemon answers at /run/docker.sock\nstart it")
	for _, c := range []struct {
		policy  Policy
		verdict Verdict
		state   State
		want    string
	}{
		{
			Policy{}, needs("numpy"), State{Language: tiers.Python}, `no tier may run the snippet
  tier interp: lacks the module numpy (line 1)
  tier wasm: lacks the module numpy (line 1)
  tier docker: not usable here: no daemon answers at /run/docker.sock start it
  tier local: policy does not allow it`,
		},
		{
			Policy{MinIsolation: tiers.IsolationWasm, AllowLocal: true},
			feature(tiers.FeatureProcesses, "subprocess.run", 3),
			State{Language: tiers.Python},
			`no tier may run the snippet
  tier interp: isolation process is weaker than the policy's minimum wasm
  tier wasm: needs processes (subprocess.run, line 3)
  tier docker: isolation container is weaker than the policy's minimum wasm
  tier local: isolation process is weaker than the policy's minimum wasm`,
		},
		{
			Policy{Modules: []string{"math"}}, needs("os"), State{Language: tiers.Go}, `no tier may run the snippet
  tier interp: policy does not allow the module os (line 1)
  tier wasm: does not run the language go
  tier docker: does not run the language go
  tier local: policy does not allow it`,
		},
		{
			Policy{Pin: "dokcer"}, needs(), State{Language: tiers.Python}, `no tier may run the snippet
  tier interp: policy does not allow it
  tier wasm: policy does not allow it
  tier docker: policy does not allow it
  tier local: policy does not allow it
  tier dokcer: there is no such tier`,
		},
		{
			Policy{Files: true}, Verdict{Unknown: "too\x1b[1m deep"}, State{Language: tiers.Python, Home: "wasm", Fixed: true}, `no tier may run the snippet
  tier interp: lacks files, which the policy wishes
  tier wasm: lacks files, which the policy wishes
  tier docker: not usable here: no daemon answers at /run/docker.sock start it
  tier local: policy does not allow it`,
		},
		{
			Policy{Tiers: []string{"interp", "wasm", "local"}, Modules: []string{"m"}}, Verdict{Unknown: "too\x1b[1m deep"}, State{Language: tiers.Python}, `no tier may run the snippet
  tier interp: not understood (too [1m deep), and it does not run the whole language
  tier wasm: not understood (too [1m deep), so that the policy's modules cannot be checked
  tier docker: policy does not allow it
  tier local: not understood (too [1m deep), so that the policy's modules cannot be checked`,
		},
		{
			Policy{AllowLocal: true}, needs(), State{
				Language: tiers.Python, Home: "interp", Fixed: true,
				Rejected: []tiers.RejectedError{{Tier: "interp", Reason: "no"}, {Tier: "wasm", Reason: "never", Missing: "nosuch"}},
			}, `no tier may run the snippet
  tier interp: rejected it: no
  tier wasm: rejected it: never
  tier docker: lacks nosuch, which tier wasm found missing
  tier local: lacks nosuch, which tier wasm found missing`,
		},
		{
			Policy{Pin: "wasm"}, needs(), State{Language: tiers.Python, Home: "interp", Fixed: true}, `no tier may run the snippet
  tier interp: policy does not allow it
  tier wasm: the session's variables cannot leave tier interp
  tier docker: policy does not allow it
  tier local: policy does not allow it`,
		},
	} {
		plan := c.policy.Plan(c.verdict, candidates, c.state)
		err := plan.Err()
		var none *NoTierError
		if !errors.Is(err, ErrNoTier) || !errors.As(err, &none) || len(none.Refusals) < 4 || err.Error() != c.want {
			t.Errorf("the error is\n%v\nwant\n%s", err, c.want)
		}
	}
	if err := (Policy{}).Plan(needs(), nil, State{Language: tiers.Python}); err.Err().Error() != "no tier may run the snippet: there is none" {
		t.Error(err.Err())
	}
}

func TestATierWithoutMovesIsNotMovedTo(t *testing.T) {
	candidates := four()
	candidates[1].Info.Features = []tiers.Feature{tiers.FeatureDynamic}
	plan := Policy{}.Plan(needs("numpy"), candidates, State{Language: tiers.Python, Home: "wasm"})
	if want := (Refusal{"docker", "the session's variables cannot move there"}); !slices.Contains(plan.Refusals, want) {
		t.Errorf("refusals %v", plan.Refusals)
	}
	if got := chain(Policy{}.Plan(needs("numpy"), candidates, State{Language: tiers.Python})); got != "docker" {
		t.Errorf("at the start of a session the chain is %q", got)
	}
}

func TestAPlanExplainsItself(t *testing.T) {
	v := needs("json", "numpy")
	v.Needs.Imports = append(v.Needs.Imports, Import{Module: "torch", Guarded: true, Line: 3})
	v.Needs.Features = []FeatureNeed{{tiers.FeatureFiles, "open(..., 'w')", 4}}
	plan := Policy{AllowLocal: true}.Plan(v, four(), State{Language: tiers.Python, Home: "wasm", Bytes: 10 << 20})
	const text = `language  python
home      wasm
snippet   imports json (line 1); imports numpy (line 2); may import torch (line 3); needs files (open(..., 'w'), line 4)

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
	const want = `"chain":[{"tier":"local","run_ns":20000000,"move_ns":105000000},{"tier":"docker","run_ns":400000000,"move_ns":105000000}],` +
		`"refusals":[{"tier":"interp","reason":"lacks the module json (line 1)"},{"tier":"wasm","reason":"lacks the module numpy (line 2)"}]}`
	if !strings.HasSuffix(string(got), want) || !strings.HasPrefix(string(got), `{"language":"python","home":"wasm","needs":{`) {
		t.Errorf("the JSON is %s", got)
	}
	for _, c := range []struct {
		verdict Verdict
		line    string
	}{
		{Verdict{Unknown: "too deep"}, "not understood: too deep"},
		{Verdict{Invalid: &tiers.Exception{Type: "SyntaxError", Message: "bad"}}, "is not python: SyntaxError: bad"},
		{needs(), "needs nothing beyond its language"},
	} {
		plan := Policy{}.Plan(c.verdict, four(), State{Language: tiers.Python, Home: "wasm"})
		if !strings.Contains(plan.Text(), "snippet   "+c.line+"\n") || !strings.Contains(plan.Text(), "  home\n") {
			t.Errorf("the text is\n%s", plan.Text())
		}
	}
}

func TestLongTextsOfASnippetAreCut(t *testing.T) {
	if got := oneLine(strings.Repeat("é", 500)); len(got) > longest+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, %q", len(got), got)
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
		if _, err := NewRunner(RunnerConfig{Policy: p}); err == nil {
			t.Errorf("a runner takes %+v", p)
		}
	}
	if err := (Policy{Pin: "wasm", Tiers: []string{"wasm"}}).Validate(); err != nil {
		t.Error(err)
	}
}

// world draws a question at random.
func world(rnd *rand.Rand) (Verdict, Policy, []Candidate, State) {
	names := []string{"interp", "wasm", "docker", "local", "other"}
	modules := []string{"math", "json", "numpy", "torch"}
	features := []tiers.Feature{tiers.FeatureDynamic, tiers.FeatureFiles, tiers.FeatureSockets, tiers.FeatureThreads, tiers.FeatureMove}
	some := func(n int) bool { return rnd.IntN(n) == 0 }
	pick := func(from []string) string { return from[rnd.IntN(len(from))] }
	var candidates []Candidate
	for _, name := range names {
		c := Candidate{Info: tiers.Info{Name: name, Isolation: tiers.Isolation(rnd.IntN(5)), Languages: []tiers.Language{tiers.Python}}}
		c.Info.Cost = tiers.Cost{Start: 1 << rnd.IntN(30), Snippet: 1 << rnd.IntN(30)}
		for _, f := range features {
			if !some(3) {
				c.Info.Features = append(c.Info.Features, f)
			}
		}
		if !some(4) {
			c.Info.Modules = tiers.ModuleSet(modules[:rnd.IntN(5)]...)
		}
		if some(5) {
			c.Unusable = errors.New("not here")
		}
		candidates = append(candidates, c)
	}
	rnd.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	p := Policy{MinIsolation: tiers.Isolation(rnd.IntN(4)), AllowLocal: some(2), Network: some(6), Files: some(6)}
	if some(3) {
		p.Tiers = []string{pick(names), pick(names)}
	}
	if some(4) {
		p.Modules = modules[:1+rnd.IntN(4)]
	}
	if some(5) {
		p.Pin = pick(names)
	}
	v := Verdict{Unknown: "x"}
	if !some(4) {
		v = needs()
		for range rnd.IntN(3) {
			v.Needs.Imports = append(v.Needs.Imports, Import{Module: pick(modules), Guarded: some(3)})
		}
		if some(2) {
			v.Needs.Features = []FeatureNeed{{Feature: features[rnd.IntN(4)]}}
		}
	}
	s := State{Language: tiers.Python, Bytes: rnd.Int64N(1 << 30), Fixed: some(5)}
	if some(2) {
		s.Home = pick(names)
	} else if some(2) {
		s.Open = []string{pick(names)}
	}
	if some(3) {
		s.Rejected = []tiers.RejectedError{{Tier: pick(names), Missing: pick(modules)}}
	}
	if some(4) {
		s.Wants = features[:1+rnd.IntN(2)]
	}
	return v, p, candidates, s
}

// violation says what a plan's step must not do, written apart from the code
// that decides.
func violation(step Step, v Verdict, p Policy, c Candidate, s State) string {
	named := slices.Contains(p.Tiers, step.Tier)
	switch {
	case p.Pin != "" && step.Tier != p.Pin:
		return "not the pin"
	case p.Pin == "" && step.Tier == "local" && !p.AllowLocal && !named:
		return "local unnamed"
	case p.Pin == "" && step.Tier != "local" && len(p.Tiers) > 0 && !named:
		return "not listed"
	case c.Info.Isolation < p.MinIsolation:
		return "too weak"
	case p.Network && !c.Info.Has(tiers.FeatureSockets), p.Files && !c.Info.Has(tiers.FeatureFiles):
		return "a wish"
	case slices.ContainsFunc(s.Wants, func(f tiers.Feature) bool { return !c.Info.Has(f) }):
		return "what the session asks for"
	case c.Unusable != nil:
		return "unusable"
	case s.Home != "" && s.Home != step.Tier && (s.Fixed || !c.Info.Has(tiers.FeatureMove)):
		return "it cannot move"
	case v.Needs == nil && (len(p.Modules) > 0 || !c.Info.Has(tiers.FeatureDynamic)):
		return "not understood"
	case len(s.Rejected) > 0 && s.Rejected[0].Tier == step.Tier:
		return "it rejected"
	}
	if v.Needs == nil {
		return ""
	}
	for _, i := range v.Needs.Imports {
		if len(p.Modules) > 0 && !slices.Contains(p.Modules, i.Module) || !i.Guarded && c.Info.Modules != nil && !c.Info.Modules.Has(i.Module) {
			return "module " + i.Module
		}
	}
	for _, f := range v.Needs.Features {
		if !c.Info.Has(f.Feature) {
			return "feature " + string(f.Feature)
		}
	}
	return ""
}

func TestAPlanIsPureAndKeepsThePolicy(t *testing.T) {
	for seed := range uint64(5_000) {
		v, p, candidates, s := world(rand.New(rand.NewPCG(seed, 0)))
		plan := p.Plan(v, candidates, s)
		v2, p2, candidates2, s2 := world(rand.New(rand.NewPCG(seed, 0)))
		before := fmt.Sprint(v.Needs, p, candidates, s)
		if after := fmt.Sprint(v2.Needs, p2, candidates2, s2); before != after {
			t.Fatalf("seed %d: the plan changed its arguments", seed)
		}
		slices.Reverse(candidates2) // nor does the order of the tiers matter
		if again := p2.Plan(v2, candidates2, s2); !reflect.DeepEqual(plan, again) {
			t.Fatalf("seed %d: one plan is\n%s\nanother\n%s", seed, plan.Text(), again.Text())
		}
		if len(plan.Chain)+len(plan.Refusals) != len(candidates) {
			t.Fatalf("seed %d: a tier is neither chosen nor refused:\n%s", seed, plan.Text())
		}
		for i, step := range plan.Chain {
			c := candidates[slices.IndexFunc(candidates, func(c Candidate) bool { return c.Info.Name == step.Tier })]
			if why := violation(step, v, p, c, s); why != "" {
				t.Fatalf("seed %d: tier %s is chosen: %s", seed, step.Tier, why)
			}
			if i > 0 && (step.Home || !plan.Chain[i-1].Home && step.Cost() < plan.Chain[i-1].Cost()) {
				t.Fatalf("seed %d: the order is wrong\n%s", seed, plan.Text())
			}
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	v, candidates := needs("json", "numpy"), four()
	b.Run("at-home", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Policy{}.Plan(needs("json"), candidates, State{Language: tiers.Python, Home: "wasm"})
		}
	})
	b.Run("to-move", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Policy{AllowLocal: true}.Plan(v, candidates, State{Language: tiers.Python, Home: "wasm", Bytes: 1 << 20})
		}
	})
}
