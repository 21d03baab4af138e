// Package tablesql runs SQL over texts that are tables, without a copy of them: each is a
// virtual table of SQLite that reads the text from the beginning.
//
// The engine is SQLite as a module of WebAssembly that was translated to Go. Each query has an
// engine of its own, whose memory is bounded and freed with it. A query is hostile: it may
// only select, and it ends with an error when it takes too long, or too much memory, or returns
// too much.
package tablesql
