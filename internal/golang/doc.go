// Package golang runs the Go snippets of a session as compiled programs. It works in every tier
// that provides a [Wall] around the compiler and the program.
//
// A session is one program. Each snippet recompiles it. In the new program, the earlier
// snippets run again first, silently and with the host's earlier answers.
//
// The packages below guest/ run behind the wall. build compiles snippets, relay starts the program
// and measures its use of resources, and run is compiled into the program.
//
// This folder contains only code for compiled Go. The code for snippets in any language is in
// internal/snippet, the Go analyser is in internal/plan, and the Go interpreter is in tiers/interp.
package golang
