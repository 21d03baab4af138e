// Package schema compiles and enforces contracts: what a value must look like
// that a model, a sub-call or a snippet hands over.
//
// A contract is written as a JSON Schema (2020-12, or draft-07), as type text
// such as "list[str]", or as a signature such as "question -> answer: str".
// [Parse] takes what a caller or a guest gives, [Contract.Check] a value,
// [Contract.CheckReply] the text of a model's reply. A check first coerces,
// guided by the schema ("3" becomes 3 where an integer is wanted) and never
// where that would lose or guess something, and then validates. What is wrong
// comes back as [Violation] values in a stable order; [Contract.Describe] says
// in a few lines what is wanted.
//
// Schemas and values are hostile. Both are bounded in size, depth and number
// of parts; the work of a check is computed before it is done; a reference
// never leaves its document. docs/schema.md has the rules and the limits.
package schema
