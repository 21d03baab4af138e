// Package tables reads the rows of texts that are tables, CSV and JSON Lines, and the lines of any
// text.
//
// A guest reads them in batches. The host decodes a batch, because it is faster than the guest, and
// writes the result in the format of CPython's module marshal, which the guest loads in one step.
// Anything rare or invalid is left to the guest, whose own code produces the exact result or the
// exact exception.
//
// The text is not trusted. A batch takes at most about ten times the size of the text that it was
// made from.
package tables
