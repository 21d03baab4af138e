// Package golang runs the Go snippets of a session as compiled programs. It works in every
// tier: the tier provides a [Wall] around compiler and program.
//
// A session is one program. Each snippet recompiles it. In the new program, the earlier
// snippets run again first, silently and with the host's earlier answers.
//
// The packages below guest/ run behind the wall: build compiles snippets, relay starts the
// program and measures its use, run is compiled into the program.
//
// This folder is only about Go as such: the life of a snippet in any language is in
// internal/snippet, the Go analyser in internal/plan, and the Go interpreter in tiers/interp.
package golang
