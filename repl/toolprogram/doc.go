// Package toolprogram offers the functions of a user's program to snippets.
//
// The program runs on the host, with the rights of its user, and exchanges lines of JSON over
// stdin and stdout. First, it writes a line that lists its tools:
//
//	{"tools": [{"name": "price", "description": "…", "parameters": {JSON Schema}}]}
//
// It then receives a line for each call, and answers each with a line, in any order:
//
//	{"id": 1, "tool": "price", "arguments": {"name": "apple"}}
//	{"id": 1, "result": 1.5}
//	{"id": 1, "error": "the shop is closed"}
//
// The line {"cancel": 1} means that the answer is no longer awaited. The arguments come from
// code that a model wrote: they are hostile, and checked against the schema.
package toolprogram
