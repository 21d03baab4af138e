// Package inputs opens files in the forms that people use: compressed, in archives, in folders, in
// any encoding. Each call to [Open] or [Read] returns one context: a text, or a folder of texts.
//
// # Untrusted files
//
// Every byte of a file is attacker-controlled. Decompression has limits on bytes and on the ratio,
// dictionaries and windows are at most 128 MiB, names in archives cannot leave their folder, and
// links are not followed. Copies go to unnamed temporary files, which together take at most half of
// the free space. Anything beyond a limit is an error, and the notes count the files that were left
// out.
package inputs
