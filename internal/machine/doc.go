// Package machine runs WebAssembly and uses the machine below it. Aot enters code that was
// compiled ahead of time, watchdog makes it leave, codecache keeps what wazero compiled,
// rustmodule runs modules made from Rust. Cpython, artefact, attached and zones are the files that
// the program brings along. Mapbudget, pagemap, prefault and filelock are for memory maps, pages
// and locks of the kernel. Nothing here knows sessions or contexts.
package machine
