// Package data groups the packages that read the inputs of sessions. Bigtext maps texts of any
// size; documents, tables and tablefiles convert files to texts and rows; pageimages draws pages;
// tablesql answers SQL queries over them. Remote reads files from servers, and openfile those with
// untrusted names. Bm25 finds passages. Package inputs decides how each file is presented.
package data
