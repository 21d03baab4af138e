// Package text groups the small tools for text. Texts shortens texts and shows JSON, spelling
// suggests names, lazyregexp compiles lazily, problem is an error for a client. They import nothing
// but the contract. Texts of users, which may be large, are in internal/data. Prompts are in the
// loops.
package text
