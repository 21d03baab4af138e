// Package ledger holds the facts of a run: what it may spend and has spent, how it
// ended, the events that tell of it while it goes on, and the lines of its record.
//
// A run is a tree of loops. One [Budget] bounds all of it, sub-loops at every depth
// included. [Event] says what happens; Progress of each loop's Config receives events,
// and a record has them in [EventsFile].
package ledger
