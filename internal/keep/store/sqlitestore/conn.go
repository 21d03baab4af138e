package sqlitestore

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/dbfile"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// conn is a connection to the database. It does not support concurrent use.
type conn struct {
	*sqlite3.Conn
	statements map[string]*sqlite3.Stmt
}

// busyWait bounds the wait for the writes of other processes.
const busyWait = 30 * time.Second

// connect opens the database at an address: see [dbfile.Address].
func connect(address string) (*conn, error) {
	db, err := sqlite3.OpenFlags(address, sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}

	c := &conn{db, map[string]*sqlite3.Stmt{}}
	if err := db.BusyTimeout(busyWait); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	var errs []error
	for _, stmt := range c.statements {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, c.Close())...)
}

// do runs a statement that returns no rows.
func (c *conn) do(sql string, args ...any) error {
	return c.query(sql, args, func(*sqlite3.Stmt) error { return nil })
}

// query runs a statement and passes each row to take. It prepares each statement once.
func (c *conn) query(sql string, args []any, take func(*sqlite3.Stmt) error) (err error) {
	stmt := c.statements[sql]
	if stmt == nil {
		if stmt, _, err = c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return err
		}
		c.statements[sql] = stmt
	}
	defer func() { err = errors.Join(err, stmt.Reset(), stmt.ClearBindings()) }()

	for i, arg := range args {
		if err := bind(stmt, i+1, arg); err != nil {
			return err
		}
	}

	for stmt.Step() {
		if err := take(stmt); err != nil {
			return err
		}
	}
	return stmt.Err()
}

func bind(stmt *sqlite3.Stmt, i int, arg any) error {
	switch v := arg.(type) {
	case int:
		return stmt.BindInt(i, v)
	case int64:
		return stmt.BindInt64(i, v)
	case uint32:
		return stmt.BindInt64(i, int64(v))
	case float64:
		return stmt.BindFloat(i, v)
	case string:
		return stmt.BindText(i, v)
	case []byte:
		return stmt.BindBlob(i, v)
	}
	return fmt.Errorf("cannot store a %T", arg)
}

// within runs work in a transaction, which holds the write lock from its beginning.
func (c *conn) within(work func() error) error {
	if err := c.do("BEGIN IMMEDIATE"); err != nil {
		return err
	}

	err := work()
	if err == nil {
		err = c.do("COMMIT")
	}
	if err != nil && !c.GetAutocommit() {
		err = errors.Join(err, c.do("ROLLBACK"))
	}
	return err
}

// explain converts the error of a database or a file to an understandable one.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the store's disk is full: free some space; earlier data is intact: %w", err)
	case errors.Is(err, sqlite3.IOERR_WRITE): // SQLite does not report why
		return fmt.Errorf("the store's disk is full or broken: free some space; earlier data is intact: %w", err)
	case errors.Is(err, sqlite3.BUSY):
		return fmt.Errorf("another process has been writing to the store for %v: try again: %w",
			busyWait, err)
	case dbfile.IsDamage(err) && !errors.Is(err, store.ErrDamaged):
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	case errors.Is(err, sqlite3.READONLY):
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	return err
}
