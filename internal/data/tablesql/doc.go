// Package tablesql runs SQL queries on texts that are tables, without copying them: each one is a
// virtual table of SQLite that reads the text from the beginning.
//
// The engine is SQLite as a WebAssembly module translated to Go. Each query has a separate engine,
// whose memory is bounded and freed with it. A query is not trusted: it may only select, and it
// ends with an error if it takes too long, needs too much memory, or returns too much.
package tablesql
