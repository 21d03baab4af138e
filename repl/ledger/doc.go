// Package ledger has the facts of a run: what it may spend and has spent, how it ended,
// and the events that report its progress.
//
// A run is a tree of loops. One [Budget] bounds all of it, sub-loops at every depth
// included. Each [Event] reports one step: Progress of a loop's Config receives them, and
// a record keeps them.
package ledger
