// Package tables reads the rows of texts that are tables, CSV and JSON Lines, and the lines of any
// text.
//
// A guest reads them in batches. The host decodes a batch, because it is faster at that than the
// guest, and writes it in the format of CPython's module marshal, which the guest loads at once.
// Anything rare or invalid is left to the guest, whose own code produces the exact result or the
// exact exception.
//
// The text is hostile. A batch is bounded by the text that it was made from, and takes at most
// about ten times its size.
package tables
