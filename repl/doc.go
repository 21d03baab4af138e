// Package repl holds what every loop between a model and a sandbox shares: the
// session, the names that a snippet sees, the tools, the budget, fan-out, what a
// reply says, what the model is told back, and the record of it all.
//
// A loop is a folder below this one, named after its command. It asks a model, finds
// code and answers in its reply ([Extract]), runs the code in a [Session], and tells
// the model what became of it ([Feedback]), until there is an answer or something is
// used up. What a snippet asks of the host arrives at [Tools].
//
// # One tree
//
// A run is a tree of loops: a snippet may start another loop, with a session of
// its own, one level deeper. All loops of a tree share one budget, one limit on
// model calls in flight and one stream of events; each has its own session,
// messages and record.
//
// # Trust
//
// Every reply and every argument of a host call is hostile: it is bounded,
// decoded strictly, and never interpreted on the host. Text that a model or an
// input wrote reaches prompts as data; what the run may spend is decided by the
// ledger alone.
package repl
