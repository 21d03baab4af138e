package tablesql

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// KindDatabase is the kind of files that SQLite itself reads. Such files are not trusted: SQLite
// runs in WebAssembly, trusts no schema, and opens no other file.
const KindDatabase bigtext.Kind = "sqlite"

// ErrDatabase reports a database that cannot be read.
var ErrDatabase = errors.New("the database cannot be read")

// These bounds apply to reading a database.
const (
	databaseTime   = 2 * time.Minute
	databasePerMiB = time.Second
	databaseMemory = 256 << 20
	databaseDisk   = 1 << 30
	maxTables      = 10_000
)

// fileSchema is the name of the database while its tables are read.
const fileSchema = "file"

// ListDatabase returns the tables and views of a database, without a way to read them. The error is
// [ErrDatabase] for a file that cannot be read.
func ListDatabase(ctx context.Context, file *bigtext.Text) ([]bigtext.Table, error) {
	var list []bigtext.Table
	err := withDatabase(ctx, file, func(db *sqlite3.Conn) error {
		names, err := listNames(db)
		if err != nil {
			return err
		}
		for _, name := range names {
			columns, err := listColumns(db, name)
			if ctx.Err() != nil || errors.Is(err, sqlite3.NOMEM) {
				return err
			}
			if err == nil { // otherwise it needs a missing module, or is a view of a missing table
				list = append(list, bigtext.Table{Name: name, Columns: columns, Rows: -1})
			}
		}
		return nil
	})
	return list, err
}

// listNames returns the names of tables and views, tables first.
func listNames(db *sqlite3.Conn) (names []string, err error) {
	stmt, _, err := db.Prepare(`SELECT name FROM file.sqlite_schema WHERE type IN ('table', 'view')
		AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY type, rowid LIMIT ` + strconv.Itoa(maxTables))
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	for stmt.Step() {
		names = append(names, stmt.ColumnText(0))
	}
	return names, stmt.Err()
}

func listColumns(db *sqlite3.Conn, table string) ([]bigtext.Column, error) {
	stmt, err := selectAll(db, table)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()

	columns := make([]bigtext.Column, stmt.ColumnCount())
	taken := map[string]bool{}
	for i := range columns {
		columns[i] = bigtext.Column{Name: makeUnique(stmt.ColumnName(i), taken), Type: stmt.ColumnDeclType(i)}
	}
	return columns, nil
}

func selectAll(db *sqlite3.Conn, table string) (*sqlite3.Stmt, error) {
	stmt, _, err := db.Prepare("SELECT * FROM " + placeName{fileSchema, table}.quote())
	return stmt, err
}

// WriteRows writes the rows of a table in a database, as JSON objects, one per line. Bytes are
// written in hexadecimal.
func WriteRows(ctx context.Context, file *bigtext.Text, table string, lines io.Writer) error {
	return withDatabase(ctx, file, func(db *sqlite3.Conn) error {
		stmt, err := selectAll(db, table)
		if err != nil {
			return err
		}
		defer stmt.Close()

		out := bufio.NewWriterSize(lines, 64<<10)
		keys := encodeKeys(columnNames(stmt))
		var line []byte
		for stmt.Step() {
			line = append(line[:0], '{')
			for i, key := range keys {
				if i > 0 {
					line = append(line, ',')
				}
				line = append(line, key...)
				if stmt.ColumnType(i) == sqlite3.BLOB {
					line = fmt.Appendf(line, `"%x"`, stmt.ColumnRawBlob(i))
				} else if line, err = appendValue(line, stmt, i); err != nil {
					return err
				}
			}
			if _, err := out.Write(append(line, "}\n"...)); err != nil {
				return err
			}
		}
		return errors.Join(stmt.Err(), out.Flush())
	})
}

// withDatabase calls use with an engine that has only this file, within the bounds.
func withDatabase(parent context.Context, file *bigtext.Text, use func(db *sqlite3.Conn) error) (err error) {
	limit := databaseTime + databasePerMiB*time.Duration(file.Size()>>20)
	ctx, cancel := context.WithTimeout(parent, limit)
	defer cancel()
	err = withEngine(ctx, databaseMemory, databaseDisk, func(e *engine) error {
		for category, value := range bounds {
			if category != sqlite3.LIMIT_ATTACHED {
				e.Limit(category, value)
			}
		}
		if err := e.attach(fileSchema, file); err != nil {
			return err
		}
		if err := e.SetAuthorizer(authorize); err != nil {
			return err
		}
		return use(e.Conn)
	})
	code := sqlite3.ErrorCode(0)
	switch {
	case err == nil:
		return nil
	case parent.Err() != nil:
		return context.Cause(parent)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: this takes more than %s", ErrDatabase, limit)
	case errors.As(err, &code):
		reason, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "sqlite3: "), ": unable to open database: ")
		return fmt.Errorf("%w: %s", ErrDatabase, reason) // without the engine's name for the file
	case errors.Is(err, errEngine):
		return fmt.Errorf("%w: %w", ErrDatabase, err)
	}
	return err
}
