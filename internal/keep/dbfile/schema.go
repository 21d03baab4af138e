package dbfile

import (
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// table is a table of this program's databases.
type table struct {
	name    string
	columns []column
	least   int // columns in every row; later columns have a default
}

type column struct {
	name, kind string
	isRowid    bool // the row's number, which is not stored in the row
}

// schema holds the tables of a database, and the columns of each index.
type schema struct {
	tables  []*table
	indexes map[string][]string
}

// readSchema reads the tables of a database.
func readSchema(c *sqlite3.Conn) (*schema, error) {
	s := &schema{indexes: map[string][]string{}}
	var names []string
	err := rowsOf(c, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`,
		func(row *sqlite3.Stmt) { names = append(names, row.ColumnText(0)) })
	for _, name := range names {
		t := &table{name: name}
		const columns = "SELECT name, type, pk, dflt_value IS NULL FROM pragma_table_info(?) ORDER BY cid"
		err = firstOf(err, rowsOf(c, columns, func(row *sqlite3.Stmt) {
			kind := row.ColumnText(1)
			t.columns = append(t.columns, column{row.ColumnText(0), kind, kind == "INTEGER" && row.ColumnInt(2) == 1})
			if row.ColumnBool(3) {
				t.least = len(t.columns)
			}
		}, name))
		s.tables = append(s.tables, t)
	}

	err = firstOf(err, rowsOf(c, `SELECT i.name, c.name FROM sqlite_schema t, pragma_index_list(t.name) i,
		pragma_index_info(i.name) c WHERE t.type = 'table' ORDER BY i.name, c.seqno`, func(row *sqlite3.Stmt) {
		s.indexes[row.ColumnText(0)] = append(s.indexes[row.ColumnText(0)], row.ColumnText(1))
	}))
	return s, err
}

func (t *table) columnNames() (names []string) {
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return names
}

// values returns the values of a row by column.
func (t *table) values(c *cell) map[string]any {
	values := map[string]any{}
	for i, v := range c.values {
		if t.columns[i].isRowid {
			v = c.rowid
		}
		values[t.columns[i].name] = v
	}
	return values
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// rowsOf calls take with each row that a statement returns.
func rowsOf(c *sqlite3.Conn, statement string, take func(*sqlite3.Stmt), args ...string) error {
	stmt, _, err := c.Prepare(statement)
	if err != nil {
		return err
	}
	for i, arg := range args {
		if err := stmt.BindText(i+1, arg); err != nil {
			return firstOf(err, stmt.Close())
		}
	}

	for stmt.Step() {
		take(stmt)
	}
	return firstOf(stmt.Err(), stmt.Close())
}

// find returns the table that matches a row's values, or nil. Columns are only ever added at the
// end, so an old row may have fewer values than its table has columns.
func (s *schema) find(values []any) *table {
	for _, t := range s.tables {
		if len(values) == len(t.columns) && t.holds(values) {
			return t
		}
	}

	var older *table
	for _, t := range s.tables {
		if len(values) < len(t.columns) && len(values) >= t.least && t.holds(values) {
			if older != nil {
				return nil // the row fits two tables
			}
			older = t
		}
	}
	return older
}

// has reports whether a table exists.
func (s *schema) has(name string) bool {
	return slices.ContainsFunc(s.tables, func(t *table) bool { return t.name == name })
}

// holds reports whether the first columns of a table can hold these values.
func (t *table) holds(values []any) bool {
	for i, v := range values {
		if !t.columns[i].holds(v) {
			return false
		}
	}
	return true
}

func (c *column) holds(value any) bool {
	switch value.(type) {
	case nil:
		return c.isRowid
	case int64:
		return !c.isRowid && (c.kind == "INTEGER" || c.kind == "REAL") // SQLite shortens 1.0 to 1
	case float64:
		return c.kind == "REAL"
	case string:
		return c.kind == "TEXT"
	case []byte:
		return c.kind == "BLOB"
	}
	return false
}
