package tablesql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// Limits bound a query.
type Limits struct {
	Time   time.Duration
	Memory int64 // of the engine, in bytes
	Disk   int64 // of the engine's temporary files, in bytes
	Rows   int
	Bytes  int // of the rows in JSON
}

// DefaultLimits returns the limits of a session.
func DefaultLimits() Limits {
	return Limits{Time: 5 * time.Minute, Memory: 256 << 20, Disk: 4 << 30, Rows: 100_000, Bytes: 32 << 20}
}

// Tables are the tables of a session.
type Tables struct {
	list    []*table
	schemas []schema
	limits  Limits
}

// schema is a context with several tables: SQLite finds each by its own name, and by the name of
// the context and its own.
type schema struct {
	name     string
	database *bigtext.Text // nil if SQLite does not read the file
}

// maxSchemas bounds the databases that SQLite attaches.
const maxSchemas = 10

// New returns the sources that are tables, or nil if none is. SQLite does not distinguish names
// that differ only in case, so such names are not assigned to any table.
func New(sources []Source, limits Limits) *Tables {
	t := &Tables{limits: limits}
	uses := map[string]int{}
	for _, source := range sources {
		for _, name := range source.Names {
			uses[strings.ToLower(name)]++
		}
	}

	for _, source := range sources {
		isShared := func(name string) bool { return uses[strings.ToLower(name)] > 1 }
		source.Names = slices.DeleteFunc(slices.Clone(source.Names), isShared)
		if source.IsTable() && len(source.Names) > 0 {
			t.list = append(t.list, newTables(source, t.addSchema(source))...)
		}
	}
	if len(t.list) == 0 {
		return nil
	}
	return t
}

// addSchema creates a schema for a source, and returns its name, or an empty string if the source
// needs none.
func (t *Tables) addSchema(source Source) string {
	name := source.Names[0]
	isOwn := strings.EqualFold(name, "main") || strings.EqualFold(name, "temp")
	all := source.Text.Tables()
	if len(all) == 0 || all[0].Name == "" || isOwn || len(t.schemas) == maxSchemas {
		return ""
	}

	added := schema{name: name}
	if source.isDatabase() {
		added.database = source.Text
	}
	t.schemas = append(t.schemas, added)
	return name
}

// Describe returns one line per table.
func (t *Tables) Describe() string {
	const most = 20
	var lines []string
	for i, table := range t.list {
		if i == most {
			lines = append(lines, fmt.Sprintf("- and %d more tables", len(t.list)-i))
			break
		}
		if line := table.describe(); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Bounds on the size and the computations of a query.
var bounds = map[sqlite3.LimitCategory]int{
	sqlite3.LIMIT_LENGTH:              8 << 20, // bytes of a value
	sqlite3.LIMIT_SQL_LENGTH:          maxQuery,
	sqlite3.LIMIT_COLUMN:              2000,
	sqlite3.LIMIT_EXPR_DEPTH:          200,
	sqlite3.LIMIT_COMPOUND_SELECT:     100,
	sqlite3.LIMIT_VDBE_OP:             1_000_000,
	sqlite3.LIMIT_FUNCTION_ARG:        100,
	sqlite3.LIMIT_ATTACHED:            0,
	sqlite3.LIMIT_LIKE_PATTERN_LENGTH: 200,
	sqlite3.LIMIT_VARIABLE_NUMBER:     maxParameters,
	sqlite3.LIMIT_TRIGGER_DEPTH:       1,
}

const (
	maxQuery      = 100_000 // bytes
	maxParameters = 10_000
)

// Query runs a query, and returns its rows as JSON: a list of objects with the columns in order.
// Parameters are a list for ?, or an object for :name.
func (t *Tables) Query(ctx context.Context, sql string, params json.RawMessage) (rows json.RawMessage, err error) {
	if len(sql) > maxQuery {
		return nil, fmt.Errorf("the query is too long: %d bytes, but at most %d are allowed", len(sql), maxQuery)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, t.limits.Time, fmt.Errorf(
		"sql: the query takes more than %s: ask for less, or join a smaller part: "+
			"WITH part AS MATERIALIZED (SELECT ...)", t.limits.Time)) //nolint:misspell // SQL's spelling
	defer cancel()
	err = withEngine(ctx, t.limits.Memory, t.limits.Disk, func(e *engine) (err error) {
		if err = t.equip(ctx, e); err == nil {
			rows, err = t.run(e.Conn, sql, params)
		}
		return err
	})
	if err != nil {
		return nil, t.explain(ctx, err)
	}
	return rows, nil
}

// equip provides an engine with the tables, and restricts it to selecting.
func (t *Tables) equip(ctx context.Context, e *engine) error {
	for _, schema := range t.schemas {
		var err error
		if schema.database != nil {
			err = e.attach(schema.name, schema.database)
		} else {
			err = e.Exec("ATTACH ':memory:' AS " + quoteName(schema.name))
		}
		if err != nil {
			return err
		}
	}
	for _, table := range t.list {
		if err := table.mount(ctx, e.Conn); err != nil {
			return err
		}
	}

	for category, value := range bounds {
		e.Limit(category, value)
	}
	if _, err := e.Config(sqlite3.DBCONFIG_DEFENSIVE, true); err != nil {
		return err
	}
	return e.SetAuthorizer(authorize)
}

// mount registers the table under all of its names. A table that cannot be read is missing, and a
// query that names it reports the reason.
func (t *table) mount(ctx context.Context, db *sqlite3.Conn) error {
	if t.isDatabase() {
		return t.nameFirst(db)
	}
	construct := func(db *sqlite3.Conn, _, _, _ string, _ ...string) (*scanned, error) {
		if err := t.prepare(); err != nil {
			return nil, err
		}
		return &scanned{t, ctx}, db.DeclareVTab(t.declare())
	}
	if err := t.prepare(); err != nil {
		return nil //nolint:nilerr // listTables reports it
	}

	names := make([]string, 0, len(t.Names)+1)
	for _, name := range t.Names {
		names = append(names, quoteName(name))
	}
	if t.inside.table != "" {
		names = append(names, t.inside.quote())
	}
	for _, name := range names {
		module := "text_" + name // avoids the names of SQLite's own modules
		//nolint:staticcheck // the method that replaces it needs a later Go
		if err := sqlite3.CreateModule(db, module, construct, construct); err != nil {
			return err
		}
		if err := db.Exec("CREATE VIRTUAL TABLE " + name + " USING " + quoteName(module)); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}

// nameFirst gives the names of its context to the first table of a database.
func (t *table) nameFirst(db *sqlite3.Conn) error {
	for _, name := range t.Names {
		if t.inside.table == "" {
			continue
		}
		if err := db.Exec("CREATE TEMP VIEW " + quoteName(name) + " AS SELECT * FROM " + t.inside.quote()); err != nil {
			return err
		}
	}
	return nil
}

// authorize allows a query to select, and nothing else.
func authorize(
	action sqlite3.AuthorizerActionCode, _, name, _, _ string,
) sqlite3.AuthorizerReturnCode {
	switch action { //nolint:exhaustive // all others are denied
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_READ, sqlite3.AUTH_RECURSIVE:
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_FUNCTION:
		if !strings.EqualFold(name, "load_extension") {
			return sqlite3.AUTH_OK
		}
	}
	return sqlite3.AUTH_DENY
}

func (t *Tables) run(db *sqlite3.Conn, sql string, params json.RawMessage) (json.RawMessage, error) {
	stmt, tail, err := db.Prepare(sql)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return nil, errors.New("the query is empty")
	}
	defer stmt.Close()

	if rest, _, err := db.Prepare(tail); err != nil || rest != nil {
		return nil, errors.New("give one query at a time")
	}
	if err := bind(stmt, params); err != nil {
		return nil, err
	}
	return t.encodeRows(stmt)
}

// explain returns an error that tells the model what to do.
func (t *Tables) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, sqlite3.NOMEM):
		return fmt.Errorf("sql: the query needs more than %s of memory: select fewer columns, group less "+
			"finely, or add a LIMIT to ORDER BY", humanize.IBytes(uint64(t.limits.Memory))) //nolint:gosec // positive
	case errors.Is(err, sqlite3.FULL):
		most := humanize.IBytes(uint64(t.limits.Disk)) //nolint:gosec // positive
		return fmt.Errorf("sql: the query sorts more than the disk has room for, or more than %s: select fewer "+
			"columns, filter by WHERE, or sort a smaller part", most)
	case errors.Is(err, sqlite3.IOERR_GETTEMPPATH):
		return fmt.Errorf("sql: the query sorts more than fits in %s of memory, and the system has no folder for "+
			"temporary files: set TMPDIR, or select fewer columns",
			humanize.IBytes(uint64(t.limits.Memory/sortShare))) //nolint:gosec // positive
	case errors.Is(err, sqlite3.AUTH), strings.HasSuffix(err.Error(), "may not be modified"):
		return errors.New("sql: only SELECT is possible: the tables are read-only")
	}

	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "sqlite3: "), "SQL logic error: ")
	text = "sql: " + text
	if strings.Contains(text, "no such table") {
		text += "; " + t.listTables()
	}
	return errors.New(text)
}

// listTables lists the tables, and the reasons why some cannot be read.
func (t *Tables) listTables() string {
	var names, all []string
	for _, table := range t.list {
		own := table.listNames()
		if err := table.prepare(); err != nil {
			all = append(all, fmt.Sprintf("%s cannot be read: %s", strings.Join(own, " or "), err))
		} else {
			names = append(names, own...)
		}
	}
	if len(names) > 0 {
		all = append(all, "the tables are: "+strings.Join(names, ", "))
	}
	return strings.Join(all, "; ")
}
