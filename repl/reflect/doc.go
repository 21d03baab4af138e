// Package rr is the Recursive Reflector: a loop in which a model explores the
// record of an agent's work with snippets, asks helpers about parts of it, and
// hands over what can be learned from it.
//
//	parsed, err := rr.ParseTrace(data, rr.FormatAuto)
//	outcome, err := rr.Run(ctx, rr.Config{
//		Models: registry, Model: "openai/gpt-5", SubagentModel: "openai/gpt-5-mini",
//		Open:   engine.Opener(router.Policy{}),
//	}, rr.Subject{Trace: parsed.Trace, Traces: parsed.Traces, Skillbook: skills})
//
// An iteration has four steps: the model is called, the code of its reply is
// extracted, the code runs in a sandbox that the router chose, and the result is
// checked. It ends the loop if it is an analysis that was not written before its
// author had looked; otherwise the model is told what became of its code. All else
// that a loop needs is package repl's.
package reflect
