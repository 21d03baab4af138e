// Package reflexion is the loop Draft → Critique → Revise: a model writes a draft, judges check
// it against evidence, and the model revises it until no judge finds more than minor issues or the
// iterations are used up. The idea is from Shinn et al., "Reflexion: Language Agents with Verbal
// Reinforcement Learning" (arXiv 2303.11366): the writer receives feedback in words, not a score.
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
// This package, not the model, decides whether a draft passes, by the severities of the issues. It
// asks again for an unreadable critique; a draft without a readable critique does not pass. The
// loop runs no code, so it needs models but no sandbox.
//
// Text from models, memory and files is data. Prompts show it in fenced blocks that it cannot
// escape, and a critique is accepted only if it meets its contract.
package reflexion
