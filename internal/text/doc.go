// Package text groups the small tools for text. Texts shortens texts and shows JSON, quantity
// shows numbers, spelling suggests names, lazyregexp compiles lazily, problem is an error for a
// client. They import only the contract. Texts of users, which may be large, are in
// internal/data. Prompts are in the loops.
package text
