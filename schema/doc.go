// Package schema compiles and enforces contracts. A contract describes the permitted form of a
// value: the answer of a model, of a sub-call or of a whole run.
//
// A contract is written as a JSON Schema (2020-12 or draft-07), as type text such as
// "list[str]", or as a signature such as "question -> answer: str". [Parse] reads any of these
// forms. [Contract.Check] checks a value, and [Contract.CheckReply] the text of a model's reply.
//
// A check first coerces the value, guided by the schema: "3" becomes 3 where an integer is
// required. It never coerces if that would lose information or require a guess. Then it validates
// the value. It returns mistakes as [Violation] values in a stable order. [Contract.Describe]
// summarises the requirements in a few lines, for a prompt.
//
// Schemas and values may be hostile. Both are bounded in size, depth and number of parts. The work
// of a check is computed before the check begins. References never leave their document.
// docs/reference/schema.md describes the rules and the limits.
package schema
