// Package distill turns many traces of failed runs into a few typed findings: clusters of
// failures with a common cause, and edits that may fix them, the most promising first.
//
//	corpus, err := distill.Parse(file, "auto")
//	result, err := distill.Run(ctx, corpus, distill.Config{Run: run.Config{
//		Models: registry, Model: "openai/gpt-5", Open: engine.Opener(router.Policy{}),
//	}})
//
// Above a threshold, a run of package run clusters the failures, and its snippets read every
// failure. Below the threshold, or without a model, the words of the errors decide. In both cases,
// this package itself checks and counts the members of each cluster.
package distill
