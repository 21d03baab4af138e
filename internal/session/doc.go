// Package session is the life of a snippet, whatever runs it.
//
// A [Machine] drives a [Guest]: an interpreter in WebAssembly, a Python process, a
// worker with an interpreter of Go, a compiled Go program. It prepares the guest, runs
// the snippet, heals the guest if the snippet has harmed it, and reports what was lost.
// Tiers keep only their walls.
//
// While a snippet runs, its [Accounts] answer what it asks of the host: host calls,
// texts, output, its answer. They also keep its time and its limits.
//
// A guest outside of this process is at the other end of a [Connection]. One that can
// return to an earlier state only by running its snippets again has a [History].
//
// Everything that a guest sends is hostile.
package session
