// Package run is the loop of recursive language models: Algorithm 1 of Zhang,
// Kraska and Khattab, "Recursive Language Models" (arXiv 2512.24601).
//
// The root model sees a description of the input, not the input itself. It writes snippets. They
// run in a sandbox that holds the input as a variable, and they call models on parts of it. The
// model receives the truncated output of the snippets; the value passed to FINAL is the answer. A
// snippet can also start the same loop on a part of the input, one level deeper, in a separate
// session.
//
//	outcome, err := run.Run(ctx, run.Config{
//		Question: "how many tickets were about lost cards?",
//		Inputs:   []tiers.Input{{Name: "tickets", Text: text}},
//		Models:   registry, Model: "openai/gpt-5", SubModel: "openai/gpt-5-mini",
//		Open:     engine.Opener(router.Policy{}),
//	})
//
// [Run] returns an [Outcome] with an exact status: answered, synthesised after the last turn,
// partial because the budget was used up, without an answer, or cancelled. The error is a
// [*repl.SetupError] if the configuration is invalid, before any work, or describes the failure
// that ended the run.
package run
