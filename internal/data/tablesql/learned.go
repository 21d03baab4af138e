package tablesql

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/data/tables"
)

// learnKinds determines the kinds of values in a table's columns from the first rows, unless the
// file declares them. It does so once, when a query first reads the table, because it unpacks a
// table in a spreadsheet.
func (t *table) learnKinds(ctx context.Context, db *sqlite3.Conn, read *reads) error {
	if t.number < 0 {
		return nil // prepare has done so
	}
	t.learning.Lock()
	defer t.learning.Unlock()
	if t.isLearned.Load() {
		return nil
	}

	found := make([]kinds, len(t.columns))
	if t.isDatabase() {
		t.sampleDatabase(db, read, found)
	} else if err := t.sampleRows(ctx, found); err != nil {
		return err
	}
	for i := range t.columns {
		c := &t.columns[i]
		if c.kind == typeBig {
			continue
		}
		c.mixed, c.text = found[i].findMixed(), found[i].text
		if c.class == classUnknown {
			c.class = found[i].findClass()
			c.hasDigits = found[i].digits > 0 && c.declared != affinityText
		}
		c.isBlend = found[i].truths > 0 && found[i].integers+found[i].reals > 0
	}
	t.isLearned.Store(true)
	return nil
}

// sampleRows counts the kinds of values in the first JSON rows.
func (t *table) sampleRows(ctx context.Context, found []kinds) error {
	text, err := t.rows(ctx)
	if err != nil {
		return err
	}
	rows := t.scan(text, min(text.Size(), sampleBytes+maxRow))

	for range sampleRows {
		line, err := rows.NextLine()
		if errors.Is(err, io.EOF) || rows.Offset() > sampleBytes {
			return nil
		}
		if err != nil {
			return err
		}
		tables.Members(line, func(key, value []byte) {
			if place, isColumn := t.places[string(key)]; isColumn {
				found[place].noteJSON(value)
			}
		})
	}
	return nil
}

// sampleDatabase counts the kinds of values in the first rows of a table in a database. The columns
// of views remain unknown, because a view may take long, as do columns that cannot be read.
func (t *table) sampleDatabase(db *sqlite3.Conn, read *reads, found []kinds) {
	before := read.columns
	defer func() { read.columns = before }()

	if t.inside.table == "" || !t.isInSchema(db) {
		return
	}
	stmt, _, err := db.Prepare("SELECT * FROM " + t.inside.quote() + " LIMIT " + strconv.Itoa(sampleRows))
	if err != nil {
		return
	}
	defer stmt.Close()

	for i := range min(stmt.ColumnCount(), len(t.columns)) {
		t.columns[i].declared = affinityOf(stmt.ColumnDeclType(i))
	}
	for size := 0; size < sampleBytes && stmt.Step(); {
		for i := range min(stmt.ColumnCount(), len(found)) {
			k := &found[i]
			switch stmt.ColumnType(i) {
			case sqlite3.INTEGER:
				k.integers++
			case sqlite3.FLOAT:
				k.reals++
			case sqlite3.BLOB:
				k.nested++
			case sqlite3.TEXT:
				text := stmt.ColumnRawText(i)
				size += len(text)
				k.noteStored(text)
			case sqlite3.NULL:
			}
		}
	}
}

// isInSchema reports whether the table is a real table, not a view.
func (t *table) isInSchema(db *sqlite3.Conn) bool {
	stmt, _, err := db.Prepare("SELECT 1 FROM " + quoteName(t.inside.schema) + ".sqlite_schema WHERE type = 'table' " +
		"AND lower(name) = " + sqlite3.Quote(strings.ToLower(t.inside.table)) +
		" AND lower(sql) NOT GLOB 'create virtual*'")
	if err != nil {
		return false
	}
	defer stmt.Close()
	return stmt.Step()
}

// affinityOf returns the affinity of a declared type, by the rules of SQLite.
func affinityOf(declared string) affinity {
	if declared == "" {
		return affinityNone
	}
	if castKind(declared) != castOther {
		return affinityNumber
	}
	if strings.Contains(strings.ToLower(declared), "blob") {
		return affinityNone
	}
	return affinityText
}
