// Package bigtext answers questions about a text of any size that the host keeps in a
// read-only mapping. The answers are those of Python's str.
//
// # Vocabulary
//
// A text is a sequence of bytes. Its characters are those that CPython obtains by decoding the
// bytes as UTF-8 with errors="surrogateescape": a valid UTF-8 sequence is one character, and each
// byte outside a valid sequence is one character, too (U+DC80 to U+DCFF in Python). utf8.DecodeRune
// divides a text in the same way, with a width of 1 for an invalid byte.
//
// An offset is a number of characters from the beginning of the text, as in Python. Where a number
// counts bytes, its name makes that clear. A range [a,b) contains the characters a to b-1. Every
// method requires 0 <= a <= b <= Len and returns an error otherwise.
//
// A boundary is a byte position at which a character starts. The three bytes before and after a
// position determine whether it is a boundary, since the first byte of a valid sequence never
// occurs inside another. So every scan can start in the middle of a text, and scans run in
// parallel.
//
// The index is an array with the number of characters before each block of 8 KiB. It is built when
// a question first needs it, and is not stored for a text that is all ASCII.
//
// A splitter defines how a text is divided into parts (lines, fields, ...). An event is the byte
// position that represents one separator, or one field. A split index counts the events before each
// block of 32 KiB, so that part i of any range is found without splitting.
//
// A regular expression has RE2's syntax and leftmost-first meaning. A lazily built
// automaton over characters finds matches (see dfa.go), and a simulation of the program
// finds their groups (see pike.go).
//
// # Mappings
//
// A file is mapped twice. Scans use a mapping without advice: counting line ends in 1 GiB that was
// in memory took 0.15 to 0.18 s of processor time through a new mapping, whether it used
// MADV_POPULATE_READ for each chunk, MADV_SEQUENTIAL, MADV_WILLNEED or no advice. Short reads
// (slices, single blocks of an index) use a mapping with MADV_RANDOM: 200 reads of 9 KB of a file
// that was not in memory took 0.04 s with it and 0.76 s without, on a disk that reads 8 MiB ahead.
// All measurements were made on Linux 6.18.
//
// # Faults
//
// If a mapped file is truncated by another program, accesses to its missing pages fault. Each
// method converts such a fault to an error that wraps [ErrChanged]. Read the bytes that
// [Text.Slice] returns inside [Guard], which does the same.
//
// # Foreign texts
//
// [Of] and [DirOf] accept texts and directories implemented by other packages, and copy them once.
package bigtext
