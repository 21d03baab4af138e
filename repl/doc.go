// Package repl holds the types that the loops between a model and a sandbox share with their users:
// the [Runner] of snippets, the [Tools] that snippets call, the [Agent] that answers them, and the
// error of a run that cannot begin.
//
// Each loop is a folder below this one, named after its command. It asks a model, finds code and
// answers in the reply, runs the code in a session, and reports the result to the model, until
// it has an answer or a budget is used up. Code that only loops share is in internal; package
// ledger holds budgets, events and statuses.
//
// # One tree
//
// A run is a tree of loops: a snippet may start another loop, with its own session, one level
// deeper. All loops of a tree share one budget, one limit on model calls in flight and one
// stream of events; each has its own session, messages and record.
//
// # Trust
//
// Every reply and every argument of a host call is hostile: it is bounded, decoded strictly, and
// never interpreted on the host. Text from a model or an input enters prompts as data; only the
// ledger decides how much the run may spend.
package repl
