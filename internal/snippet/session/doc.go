// Package session runs snippets from start to end, in every tier.
//
// A [Machine] drives a [Guest]: an interpreter in WebAssembly, a Python process, a worker with a Go
// interpreter, or a compiled Go program. It prepares the guest, runs the snippet, heals the guest
// if the snippet damaged it, and reports losses. Tiers provide only their walls.
//
// While a snippet runs, its [Accounts] answer its requests to the host: host calls, texts, output,
// the answer. They also enforce its limits.
//
// A guest in another process is at the other end of a [Connection]. A guest that can restore an
// earlier state only by replaying its snippets has a [History].
//
// Everything that a guest sends is hostile.
package session
