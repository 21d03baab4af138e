// Package reflexion is the loop Draft → Critique → Revise: a model writes a draft,
// judges hold it against evidence, and the model revises it until no judge finds
// more than minor issues or the iterations are used up. The idea is that of Shinn
// et al., "Reflexion: Language Agents with Verbal Reinforcement Learning" (arXiv
// 2303.11366): what goes back to the writer is words, not a score.
//
//	result, err := reflexion.Run(ctx, reflexion.Config{
//		Task:   "How do I set up database migrations?",
//		Memory: reflexion.Memory{Facts: []reflexion.Fact{
//			{Content: "Use drizzle-kit for migrations", Confidence: 0.85},
//		}},
//		Paths:  []string{"docs", "src"},
//		Models: registry, Model: "openai/gpt-5",
//	})
//
// Whether a draft passes is decided here, from the severities of the issues, and
// never by the model. A critique that cannot be read is asked for again; if it never
// can be read the draft has not passed. No code of a model runs: the loop needs
// models, and no sandbox.
//
// What a model wrote, what memory says and what lies in files is data: it stands in
// fenced blocks that it cannot leave, and only a critique that meets its contract is
// looked into.
package reflexion
