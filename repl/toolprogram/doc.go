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
// The line {"cancel": 1} cancels call 1, whose answer is no longer needed. The arguments come from
// code that a model wrote, so they are hostile; they are checked against the schema.
package toolprogram
