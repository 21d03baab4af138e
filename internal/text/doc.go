// Package text groups the small tools for text. Package texts shortens text and shows JSON,
// quantity shows numbers, spelling suggests names, lazyregexp compiles lazily, and problem defines
// errors for clients. They import only the contract. Users' texts, which may be large, are handled
// in internal/data. Prompts are in the loops.
package text
