// Package inputs opens files as people have them: compressed, in archives, in folders, in any
// encoding. Each call of [Open] or [Read] gives one context: a text, or a folder of texts.
//
// # Untrusted files
//
// Every byte of a file is attacker-controlled. Decompression has limits on bytes and on the
// ratio, dictionaries and windows are at most 128 MiB, names in archives cannot leave
// their folder, and links are not followed. Copies go to temporary files without a name, which
// together take at most half of the free space. Anything beyond a limit is an error, and
// anything left out is counted in the notes.
package inputs
