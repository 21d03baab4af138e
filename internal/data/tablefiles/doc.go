// Package tablefiles reads the tables in files: Parquet, Arrow files and streams, and spreadsheets.
// A table becomes lines of JSON, one per row.
//
// Hostile files are parsed inside WebAssembly, with a separate instance for each file: without
// files and network access, within bounds of memory, fuel and time. A malicious file ends with an
// error.
package tablefiles
