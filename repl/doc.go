// Package repl holds what loops between a model and a sandbox share with their users: the
// [Runner] of snippets, the [Tools] that snippets find, the [Agent] that answers them, and
// the error of a run that cannot begin.
//
// A loop is a folder below this one, named after its command. It asks a model, finds
// code and answers in its reply, runs the code in a session, and tells the model what
// became of it, until there is an answer or something is used up. What loops alone
// share is in internal; package ledger holds budgets, events and statuses.
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
