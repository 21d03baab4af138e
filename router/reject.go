package router

import (
	"slices"

	"github.com/rlmhq/rlm/internal/snippet/abilities"
	"github.com/rlmhq/rlm/tiers"
)

// mayBeRejected reports whether the first tier of a chain should reject the snippet if it turns out
// to lack something. A rejectable run costs a checkpoint, so it is only worthwhile if the first
// tier may lack something that another tier may have.
func (q *question) mayBeRejected(chain []Step, candidates []Candidate) bool {
	if len(chain) < 2 {
		return false
	}

	infos := make([]*tiers.Info, len(chain))
	for i, step := range chain {
		at := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Info.Name == step.Tier })
		infos[i] = &candidates[at].Info
	}
	return q.state.Restored && infos[0].Modules != nil ||
		mayReject(infos[0], q.state.Language, q.verdict) ||
		missesModule(infos, q.state.Language, q.verdict)
}

// missesModule reports whether a snippet may import a module that the first tier lacks and
// another one may have.
func missesModule(chain []*tiers.Info, language tiers.Language, v *Verdict) bool {
	if v.Needs == nil {
		return false
	}
	for i := range v.Needs.Imports {
		module := &v.Needs.Imports[i]
		hasIt := func(info *tiers.Info) bool { return !abilities.LacksModule(info, language, module.Module) }
		if !module.Guarded && !hasIt(chain[0]) && slices.ContainsFunc(chain[1:], hasIt) {
			return true
		}
	}
	return false
}

// mayReject reports whether a tier may discover at run time that it cannot run the snippet.
func mayReject(info *tiers.Info, language tiers.Language, v *Verdict) bool {
	if v.Needs == nil || v.Needs.needsFeature(tiers.FeatureDynamic) || !abilities.RunsWholeLanguage(info) {
		return true
	}
	if v.Needs.needsFeature(tiers.FeatureOut) && !info.Has(tiers.FeatureFiles) {
		return true // the snippet may write elsewhere, too
	}
	if language != tiers.Python || info.Modules != nil {
		return false
	}

	for i := range v.Needs.Imports {
		if !v.Needs.Imports[i].Guarded {
			return true
		}
	}
	return false
}
