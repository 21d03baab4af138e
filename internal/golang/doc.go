// Package golang runs the Go snippets of a session as compiled programs. It works in every
// tier: the tier provides a [Wall] around compiler and program.
//
// A session is one program. Each snippet recompiles it. In the new program, the earlier
// snippets run again first, silently and with the host's earlier answers.
//
// The packages below guest/ run behind the wall: build compiles snippets, relay starts the
// program and measures its use, run is compiled into the program.
//
// The room has Go alone: the life of a snippet in any language is in internal/snippet, the analyser
// of Go in internal/plan, and the interpreter of Go in tiers/interp.
package golang
