// Package toolprogram offers the functions of a program of the user to snippets.
//
// The program runs on the host, with the rights of its user, and speaks lines of JSON over
// stdin and stdout. It begins with the line of its tools:
//
//	{"tools": [{"name": "price", "description": "…", "parameters": {JSON Schema}}]}
//
// Then it gets a line for each call, and answers each with a line, in any order:
//
//	{"id": 1, "tool": "price", "arguments": {"name": "apple"}}
//	{"id": 1, "result": 1.5}
//	{"id": 1, "error": "the shop is closed"}
//
// The line {"cancel": 1} says that nobody waits for the answer any more. The arguments come
// from code that a model wrote: they are checked against the schema, and hostile.
package toolprogram
