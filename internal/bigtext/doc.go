// Package bigtext answers questions about a text of any size that the host
// keeps in a read-only mapping, in the terms of Python's str.
//
// # Vocabulary
//
// A text is a sequence of bytes. Its characters are those that CPython gets
// when it decodes the bytes as UTF-8 with errors="surrogateescape": a valid
// UTF-8 sequence is one character, and each byte that is part of no valid
// sequence is one character too (U+DC80 to U+DCFF in Python). The partition is
// that of utf8.DecodeRune, where an invalid byte has width 1.
//
// An offset is a number of characters from the beginning of the text, as in
// Python; where a number counts bytes its name says so. A range [a,b) holds
// the characters a to b-1; every method wants 0 <= a <= b <= Len and says so
// when it is not.
//
// A boundary is a byte position at which a character starts. Whether a
// position is one can be told from the three bytes before and after it, since
// the first byte of a valid sequence never occurs inside another one. That is
// what allows every scan to start in the middle of a text, so in parallel.
//
// The index is an array with the number of characters before each block of
// 8 KiB; it is built at the first question that needs it and not kept for a
// text that is all ASCII.
//
// A splitter says how a text falls into parts (lines, fields, ...). An event is
// the byte position that stands for one separator (or, for fields, for one
// field); a split index counts the events before each block of 32 KiB, so that
// part i of any range is found without splitting.
//
// A regular expression has RE2's syntax and leftmost-first meaning; it is run
// by a lazily built automaton over characters (see dfa.go), and by a simulation
// of the program (see pike.go) where groups are asked for.
//
// A file is mapped twice. Scans use a mapping without advice: in 1 GiB that is
// in memory, counting line ends through a new mapping took 0.15 to 0.18 s of
// processor time with MADV_POPULATE_READ per chunk, MADV_SEQUENTIAL,
// MADV_WILLNEED and none. What is read here and there (short slices, single
// blocks of an index) uses one with MADV_RANDOM: 200 reads of 9 KB of a file
// that is not in memory took 0.04 s with it and 0.76 s without, where the disk
// reads 8 MiB ahead (all on Linux 6.18).
//
// # Faults
//
// A mapped file that somebody truncates makes its missing pages fault. Each
// method turns that into an error that wraps [ErrChanged]. Who reads the bytes
// that [Text.Slice] returns does so inside [Guard].
package bigtext
