// Package ledger holds the facts of a run: its budget and spending, how it ended, and the events
// that report its progress.
//
// A run is a tree of loops. One [Budget] bounds the whole tree, including sub-loops at every depth.
// Each [Event] reports one step: Progress in a loop's Config receives them, and a record stores
// them.
package ledger
