// Package distill makes few typed findings of many traces of failed runs: clusters
// of failures with a common cause, and edits that would mend them, the most promising
// first.
//
//	corpus, err := distill.Parse(file)
//	result, err := distill.Run(ctx, corpus, distill.Config{Run: rlm.Config{
//		Models: registry, Model: "openai/gpt-5", Open: engine.Opener(router.Policy{}),
//	}})
//
// More failures than a threshold go to a run of package rlm, whose snippets read all
// of them; fewer, and any number where there is no model, are clustered by their
// words. Which failures belong to a cluster, and how many they are, is checked and
// counted here, whoever made the clusters.
package distill
