package pgstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

//go:embed schema.sql
var schema string

// sections returns the statements that upgrade a database, by version.
func sections() []string {
	return strings.Split(schema, "\n-- version ")[1:]
}

// leastVersion is the oldest version of the program that can work with a database that this one has
// upgraded. While a fleet is upgraded, two versions of the program work side by side.
const leastVersion = 1

var validSchema = lazyregexp.New(`^[a-z_][a-z0-9_]{0,62}$`)

// qualify writes a statement for the schema of a store: @logs stands for its table logs.
func (s *Store) qualify(sql string) string {
	return strings.ReplaceAll(sql, "@", s.schema+".")
}

// migrate creates the tables or upgrades them. It refuses tables that are too new.
func (s *Store) migrate(ctx context.Context) error {
	return s.try(ctx, func(ctx context.Context, c *pgx.Conn) error {
		version, err := s.readVersion(ctx, c)
		if err != nil || version >= len(sections()) {
			return err
		}
		if s.readOnly {
			return fmt.Errorf("its tables have version %d: open it once with the right to write", version)
		}
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return s.upgrade(ctx, tx) })
	})
}

// readVersion returns the version of the tables, or 0 if there are none.
func (s *Store) readVersion(ctx context.Context, c query) (version int, err error) {
	var exists bool
	err = c.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n
		ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'version')`, s.o.Schema).Scan(&exists)
	if err != nil || !exists {
		return 0, err
	}

	var needed int
	err = c.QueryRow(ctx, s.qualify("SELECT version, needed FROM @version")).Scan(&version, &needed)
	if err == nil && needed > len(sections()) {
		err = fmt.Errorf("its tables have version %d, which needs a program that knows version %d, and this one "+
			"knows %d: use the newer program, or name another schema", version, needed, len(sections()))
	}
	return version, err
}

// query is a connection or a transaction.
type query interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// upgrade upgrades the tables, while no other process does.
func (s *Store) upgrade(ctx context.Context, tx pgx.Tx) error {
	const lock = 0x726c6d73 // "rlms"
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::int, hashtext($2))", lock, s.schema)
	if err != nil {
		return err
	}

	version, err := s.readVersion(ctx, tx) // another process may have upgraded them meanwhile
	if err != nil || version >= len(sections()) {
		return err
	}

	if version == 0 {
		if err := s.createSchema(ctx, tx); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, "SET LOCAL search_path = "+s.schema); err != nil {
		return err
	}
	for i, section := range sections()[version:] {
		_, statements, _ := strings.Cut(section, "\n")
		if _, err := tx.Exec(ctx, statements); err != nil {
			return fmt.Errorf("cannot upgrade its tables to version %d: %w", version+i+1, err)
		}
	}
	_, err = tx.Exec(ctx, s.qualify("UPDATE @version SET version = $1, needed = $2"), len(sections()), leastVersion)
	return err
}

// createSchema creates the schema and the table of its version. An administrator may have created
// the schema for a role that cannot.
func (s *Store) createSchema(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)",
		s.o.Schema).Scan(&exists)
	if err != nil {
		return err
	}
	create := "CREATE TABLE @version (version int NOT NULL, needed int NOT NULL); INSERT INTO @version VALUES (0, 0)"
	if !exists {
		create = "CREATE SCHEMA " + s.schema + "; " + create
	}
	_, err = tx.Exec(ctx, s.qualify(create))
	return err
}

// decideReadOnly finds out whether the store can be written: a standby cannot, nor can a role
// without the right.
func (s *Store) decideReadOnly(ctx context.Context) error {
	var standby bool
	var right *bool
	err := s.scan(ctx, `SELECT current_setting('transaction_read_only')::bool,
		has_table_privilege(to_regclass($1), 'UPDATE')`, []any{s.qualify("@heads")}, &standby, &right)
	s.readOnly = standby || right != nil && !*right
	return err
}

// scan reads one row.
func (s *Store) scan(ctx context.Context, sql string, args []any, to ...any) error {
	return s.try(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, s.qualify(sql), args...).Scan(to...)
	})
}

// checkDurability refuses a connection on which a commit is not durable: the promise of Append
// would be empty.
func checkDurability(ctx context.Context, c *pgx.Conn) error {
	var level string
	if err := c.QueryRow(ctx, "SELECT current_setting('synchronous_commit')").Scan(&level); err != nil {
		return err
	}
	if level == "off" {
		return errNotDurable
	}
	return nil
}

// errNotDurable refuses a server that may lose what it has acknowledged.
var errNotDurable = errors.New("the server has synchronous_commit=off, so it could lose what it acknowledged: " +
	"set it to on for this role, or add options=-csynchronous_commit%3Don to the URL")

// checkRow maps the absence of a row to the error of the contract.
func checkRow(err error, id store.ID) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w", id, store.ErrNotFound)
	}
	return err
}
