package bigtext

import (
	"context"
	"errors"
	"fmt"
)

// Table is one table in the file behind a text, such as a sheet of a workbook.
type Table struct {
	Name    string // empty if the file has only one
	Columns []Column
	Rows    int64 // -1 if unknown
	// Read returns the text of its rows: JSON objects, one per line, with all columns.
	Read func(ctx context.Context) (*Text, error)
}

// Column is a column with a name that is unique in its table, and a type in the terms of the file
// format, which may be empty.
type Column struct{ Name, Type string }

// tableSet holds the tables of a text, and the rows of the tables that were read.
type tableSet struct {
	list  []Table
	texts map[int]*Text
	turn  chan struct{} // held while a table is read
}

// MarkTables sets the tables of the text. Call it before the text is used.
func (t *Text) MarkTables(tables []Table) {
	set := &tableSet{tables, map[int]*Text{}, make(chan struct{}, 1)}
	t.tables = set
	t.Own(func() error {
		set.turn <- struct{}{} // not released: no table is read again
		var errs []error
		for _, text := range set.texts {
			errs = append(errs, text.Close())
		}
		return errors.Join(errs...)
	})
}

// Tables returns the tables set by MarkTables. Do not write to the slice.
func (t *Text) Tables() []Table {
	if t.tables == nil {
		return nil
	}
	return t.tables.list
}

// Table returns the rows of the table with the given number, and reads them on the first call. They
// belong to t.
func (t *Text) Table(ctx context.Context, number int) (*Text, error) {
	if number < 0 || number >= len(t.Tables()) {
		return nil, fmt.Errorf("%s has no table %d", t.name, number)
	}
	if err := t.acquire(); err != nil {
		return nil, err
	}
	defer func() { _ = t.release() }() // Close has another reference

	set := t.tables
	select {
	case set.turn <- struct{}{}:
		defer func() { <-set.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	if text := set.texts[number]; text != nil {
		return text, nil
	}
	text, err := set.list[number].Read(ctx)
	if err != nil {
		return nil, err
	}
	text.kind = KindJSONL
	set.texts[number] = text
	return text, nil
}
