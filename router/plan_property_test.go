package router

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// world returns random arguments for a plan.
func world(rnd *rand.Rand) (Verdict, Policy, []Candidate, Standing) {
	names := []string{"interp", "wasm", "docker", "local", "other"}
	modules := []string{"math", "json", "numpy", "torch"}
	features := []tiers.Feature{
		tiers.FeatureDynamic, tiers.FeatureFiles, tiers.FeatureSockets, tiers.FeatureThreads,
		tiers.FeatureMove,
	}
	some := func(n int) bool { return rnd.IntN(n) == 0 }
	pick := func(from []string) string { return from[rnd.IntN(len(from))] }
	var candidates []Candidate
	for _, name := range names {
		c := Candidate{
			Info: tiers.Info{
				Name:      name,
				Isolation: tiers.Isolation(rnd.IntN(5)),
				Languages: []tiers.Language{tiers.Python},
			},
		}
		c.Info.OnRequest = name == "local"
		c.Info.Cost = tiers.Cost{Start: 1 << rnd.IntN(30), Snippet: 1 << rnd.IntN(30)}
		if some(2) {
			c.Info.Cost.Slowdown = map[tiers.Language]float64{
				tiers.Python: float64(1 + rnd.IntN(10)),
			}
		}
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
	rnd.Shuffle(len(candidates),
		func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	p := Policy{
		MinIsolation: tiers.Isolation(rnd.IntN(4)),
		AllowLocal:   some(2),
		Network:      some(6),
		Files:        some(6),
	}
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
			v.Needs.Imports = append(v.Needs.Imports,
				Import{Module: pick(modules), Guarded: some(3), Unlikely: some(4)})
		}
		if some(2) {
			v.Needs.Features = []FeatureNeed{{Feature: features[rnd.IntN(4)]}}
		}
		if some(2) {
			v.Needs.Computes = 1 << rnd.IntN(40)
		}
	}
	s := Standing{
		Language: tiers.Python,
		Bytes:    rnd.Int64N(1 << 30),
		Fixed:    some(5),
		Settled:  some(5),
	}
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

// violation returns which rule a plan's step violates. It is independent of the code under test.
func violation(step Step, v Verdict, p Policy, c Candidate, s Standing) string {
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
		if len(p.Modules) > 0 && !slices.Contains(p.Modules, i.Module) {
			return "module " + i.Module
		}
	}
	if lacks := countLacked(v, c); lacks != len(step.Lacks) ||
		lacks > 0 && !c.Info.Has(tiers.FeatureDynamic) {
		return fmt.Sprintf("lacks %d modules, the plan says %q", lacks, step.Lacks)
	}
	for _, f := range v.Needs.Features {
		if !c.Info.Has(f.Feature) {
			return "feature " + string(f.Feature)
		}
	}
	return ""
}

// countLacked counts the modules that a snippet certainly imports and a tier lacks.
func countLacked(v Verdict, c Candidate) int {
	lacked := map[string]bool{}
	for _, i := range v.Needs.Imports {
		if !i.Guarded && !i.Unlikely && c.Info.Modules != nil && !c.Info.Modules[i.Module] {
			lacked[i.Module] = true
		}
	}
	return len(lacked)
}

func TestAPlanIsPureAndKeepsThePolicy(t *testing.T) {
	for seed := range uint64(5_000) {
		v, p, candidates, s := world(rand.New(rand.NewPCG(seed, 0)))
		plan := p.Plan(v, candidates, s)
		v2, p2, candidates2, s2 := world(rand.New(rand.NewPCG(seed, 0)))
		before, after := []any{v, p, candidates, s}, []any{v2, p2, candidates2, s2}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("seed %d: the plan changed its arguments", seed)
		}
		slices.Reverse(candidates2) // the order of the tiers must not matter either
		if again := p2.Plan(v2, candidates2, s2); !reflect.DeepEqual(plan, again) {
			t.Fatalf("seed %d: one plan is\n%s\nanother\n%s", seed, plan.Text(), again.Text())
		}
		if len(plan.Chain)+len(plan.Refusals) != len(candidates) {
			t.Fatalf("seed %d: a tier is neither chosen nor refused:\n%s", seed, plan.Text())
		}
		for _, r := range plan.Refusals {
			c := candidates[slices.IndexFunc(candidates,
				func(c Candidate) bool { return c.Info.Name == r.Tier })]
			if strings.HasPrefix(r.Reason, "lacks the module") && c.Info.Has(tiers.FeatureDynamic) &&
				(len(plan.Chain) == 0 || countLacked(v, c) <= len(plan.Chain[0].Lacks)) {
				t.Fatalf("seed %d: a module refuses the tier %s\n%s", seed, r.Tier, plan.Text())
			}
		}
		for i, step := range plan.Chain {
			c := candidates[slices.IndexFunc(candidates,
				func(c Candidate) bool { return c.Info.Name == step.Tier })]
			if why := violation(step, v, p, c, s); why != "" {
				t.Fatalf("seed %d: tier %s is chosen: %s", seed, step.Tier, why)
			}
			if i == 0 {
				continue
			}
			before := plan.Chain[i-1]
			if len(step.Lacks) != len(before.Lacks) {
				t.Fatalf("seed %d: one tier lacks more modules than another\n%s", seed, plan.Text())
			}
			cheaper := step.cost() < before.cost()
			if !plan.ForSpeed { // computing time is not considered
				cheaper = step.Home || !before.Home && step.Run+step.Move < before.Run+before.Move
			}
			if cheaper {
				t.Fatalf("seed %d: the order is wrong\n%s", seed, plan.Text())
			}
		}
	}
}
