// Package reflect is the Recursive Reflector: a loop in which a model explores the trace of an
// agent's work with snippets, asks helpers about parts of the trace, and submits the lessons.
//
//	subject, err := reflect.ParseTrace(data, "auto")
//	outcome, err := reflect.Run(ctx, reflect.Config{
//		Models: registry, Model: "openai/gpt-5", SubModel: "openai/gpt-5-mini",
//		Open:   engine.Opener(router.Policy{}),
//	}, subject)
//
// An iteration has four steps: call the model, extract the code from its reply, run the code in
// a sandbox that the router chose, and check the result. An analysis ends the loop, unless the
// model wrote it before it looked at the trace; otherwise the model receives the result of its
// code.
package reflect
