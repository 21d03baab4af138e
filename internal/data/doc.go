// Package data reads the inputs of sessions. Bigtext maps texts of any size; documents, tables and
// tablefiles turn files into texts and rows; tablesql answers SQL over them. Remote reads files of
// servers, openfile those whose names come from strangers. Bm25 finds passages. Which form a file
// has is decided in package inputs.
package data
