// Package rlm is the loop of recursive language models: Algorithm 1 of Zhang,
// Kraska and Khattab, "Recursive Language Models" (arXiv 2512.24601).
//
// A root model is told what the input is, not what is in it. It writes snippets;
// they run in a sandbox in which the input is a variable, and call models on parts
// of it. What the snippets print goes back to the model, cut to size; what they
// hand to FINAL is the answer. A snippet can also start the same loop on a part,
// one level deeper, with a session of its own.
//
//	outcome, err := rlm.Run(ctx, rlm.Config{
//		Question: "how many tickets were about lost cards?",
//		Inputs:   []tiers.Input{{Name: "tickets", Text: text}},
//		Models:   registry, Model: "openai/gpt-5", SubModel: "openai/gpt-5-mini",
//		Open:     engine.Opener(router.Policy{}),
//	})
//
// [Run] ends with an [Outcome] whose status is honest: answered, synthesised at
// the end of its turns, partial because the budget was used up, without an answer,
// or cancelled. It returns an error for what is wrong with the configuration,
// before any work, and for what broke on the way.
package run
