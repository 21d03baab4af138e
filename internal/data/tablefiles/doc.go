// Package tablefiles reads the tables in files: Parquet, Arrow and its streams, and spreadsheets.
// A table becomes lines of JSON, one for each row.
//
// Hostile files are parsed inside WebAssembly, each in an instance of its own: without files and
// network, within bounds of memory, fuel and time. A file that is made to harm ends with an error.
package tablefiles
