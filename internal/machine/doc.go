// Package machine groups the packages that run WebAssembly and use the machine below it. Aot enters
// code compiled ahead of time, watchdog makes guests leave, codecache caches wazero's compiled
// code, and rustmodule runs modules built from Rust. Cpython, artefact, attached and zones contain
// the files shipped with the program. Mapbudget, pagemap, prefault and filelock handle the kernel's
// memory maps, pages and locks. Nothing here depends on sessions or contexts.
package machine
