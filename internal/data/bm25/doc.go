// Package bm25 finds the passages of files and texts that fit a query best.
//
// A [Library] is made once of files and folders: a bounded walk that follows no
// link, leaves out what is binary, hidden or too large, and mends what is not
// UTF-8. The texts are cut into passages of some lines. [Library.Search] ranks
// them by BM25, and gives each a relevance between 0 and 1.
//
// Files are hostile: every bound is kept while reading, and what was left out is
// counted in [Skipped], never silently.
package bm25
