// Package bm25 finds the passages of files and texts that match a query best.
//
// A [Library] is built once from files and folders: by a bounded walk that follows no links, skips
// binary, hidden and large files, and repairs invalid UTF-8. The texts are cut into passages of a
// few lines. [Library.Search] ranks them by BM25, and gives each a relevance between 0 and 1.
//
// Files may be hostile: every bound is enforced while reading, and everything left out is counted
// in [Skipped], never dropped silently.
package bm25
