package dbfile

import (
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// inserts adds rows to the tables of a database.
type inserts struct {
	into  *sqlite3.Conn
	stmts map[insert]*sqlite3.Stmt
}

// insert is a statement for the first columns of a table. The other columns get their defaults.
type insert struct {
	table *table
	count int
}

func newInserts(into *sqlite3.Conn) *inserts {
	return &inserts{into, map[insert]*sqlite3.Stmt{}}
}

// add adds a row unless a row with the same key exists.
func (i *inserts) add(t *table, c cell) (err error) {
	stmt := i.stmts[insert{t, len(c.values)}]
	if stmt == nil {
		names := t.columnNames()[:len(c.values)]
		stmt, _, err = i.into.Prepare(fmt.Sprintf("INSERT OR IGNORE INTO %s (%s) VALUES (?%s)",
			sqlite3.QuoteIdentifier(t.name), strings.Join(names, ", "), strings.Repeat(", ?", len(names)-1)))
		if err != nil {
			return err
		}
		i.stmts[insert{t, len(c.values)}] = stmt
	}

	for at, value := range c.values {
		if t.columns[at].isRowid {
			value = c.rowid
		}
		if err := bind(stmt, at+1, value); err != nil {
			return err
		}
	}

	stmt.Step()
	return firstOf(stmt.Err(), stmt.Reset())
}

func (i *inserts) close() (err error) {
	for _, stmt := range i.stmts {
		err = firstOf(err, stmt.Close())
	}
	return err
}

func bind(stmt *sqlite3.Stmt, at int, value any) error {
	switch v := value.(type) {
	case int64:
		return stmt.BindInt64(at, v)
	case float64:
		return stmt.BindFloat(at, v)
	case string:
		return stmt.BindText(at, v)
	case []byte:
		return stmt.BindBlob(at, v)
	}
	return stmt.BindNull(at)
}
