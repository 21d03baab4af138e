package tablesql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// Limits bound a query.
type Limits struct {
	Time   time.Duration
	Memory int64 // the engine's memory, in bytes
	Disk   int64 // the engine's temporary files, in bytes
	Rows   int
	Bytes  int // the size of the rows as JSON
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
	shared  map[string][]string // by lower-case name: the files that share it, so none gets it
}

// schema is a context with several tables: a query can refer to each by its own name, with or
// without the name of the context.
type schema struct {
	name     string
	database *bigtext.Text // nil if SQLite does not read the file
}

// maxSchemas bounds the databases that SQLite attaches.
const maxSchemas = 10

// New returns the sources that are tables, or nil if there are none. SQLite does not distinguish
// names that differ only in case, so such names are not assigned to any table.
func New(sources []Source, limits Limits) *Tables {
	t := &Tables{limits: limits, shared: map[string][]string{}}
	for _, source := range sources {
		for _, name := range source.fileNames() {
			name = strings.ToLower(name)
			t.shared[name] = append(t.shared[name], source.File)
		}
	}

	for _, source := range nameSources(sources) {
		if source.IsTable() && (len(source.Names) > 0 || source.File != "") {
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
	if len(source.Names) == 0 {
		return ""
	}

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

// These bounds apply to the size and the computations of a query.
var bounds = map[sqlite3.LimitCategory]int{
	sqlite3.LIMIT_LENGTH:              8 << 20,      // bytes of a value
	sqlite3.LIMIT_SQL_LENGTH:          4 * maxQuery, // including what rewrite adds
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

	given, err := readParameters(params)
	if err != nil {
		return nil, t.explain(ctx, sql, err)
	}
	asked := newQuestion(sql, given)
	var read reads
	err = withEngine(ctx, t.limits.Memory, t.limits.Disk, func(e *engine) (err error) {
		if err = t.equip(ctx, e, asked, &read); err == nil {
			rows, err = t.run(ctx, e.Conn, asked, &read, given)
		}
		return err
	})
	if err == nil {
		t.noteColumns(ctx, asked, &read)
	}
	if err != nil {
		return nil, t.explain(ctx, sql, err)
	}
	return rows, nil
}

// equip gives an engine the tables, and restricts it to SELECT.
func (t *Tables) equip(ctx context.Context, e *engine, asked *question, read *reads) error {
	if err := e.CreateCollation(collation, compareNumbers); err != nil {
		return err
	}
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
		if err := table.mount(ctx, e.Conn, asked); err != nil {
			return err
		}
	}

	for category, value := range bounds {
		e.Limit(category, value)
	}
	if err := asked.addFunctions(e.Conn); err != nil {
		return err
	}
	if _, err := e.Config(sqlite3.DBCONFIG_DEFENSIVE, true); err != nil {
		return err
	}
	return e.SetAuthorizer(read.authorize)
}

// mount registers the table under all of its names. A table that cannot be read is missing, and a
// query that names it reports the reason.
func (t *table) mount(ctx context.Context, db *sqlite3.Conn, asked *question) error {
	if t.isDatabase() {
		_ = t.prepare() // a table with too many columns has no kinds
		return t.nameFirst(db)
	}
	construct := func(db *sqlite3.Conn, _, _, _ string, _ ...string) (*scanned, error) {
		if err := t.prepare(); err != nil {
			return nil, err
		}
		return &scanned{table: t, ctx: ctx, asked: asked}, db.DeclareVTab(t.declare())
	}
	if err := t.prepare(); err != nil {
		return nil //nolint:nilerr // listTables reports it
	}

	names := make([]string, 0, len(t.Names)+2)
	for _, name := range t.unqualified() {
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
	for _, name := range t.unqualified() {
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

func (t *Tables) run(
	ctx context.Context, db *sqlite3.Conn, asked *question, read *reads, given any,
) (json.RawMessage, error) {
	hasBigs := t.hasBigs()
	sql, words, err := asked.rewrite(hasBigs)
	if err != nil {
		return nil, err
	}
	stmt, err := prepareOne(db, sql)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()

	if err := t.checkUses(ctx, db, asked, read); err != nil {
		return nil, err
	}
	names := columnNames(stmt)
	for i := range names {
		names[i] = restoreName(names[i])
	}

	if checked := prepareChecked(db, asked, words, len(names)); checked != nil {
		_ = stmt.Close()
		stmt = checked
	}
	if err := bind(stmt, given, hasBigs); err != nil {
		return nil, err
	}
	return t.encodeRows(stmt, names, asked, t.readsBigs(read))
}

// prepareOne prepares a query, which must be the only one in sql.
func prepareOne(db *sqlite3.Conn, sql string) (*sqlite3.Stmt, error) {
	stmt, tail, err := db.Prepare(sql)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return nil, errors.New("the query is empty")
	}

	if rest, _, err := db.Prepare(tail); err != nil || rest != nil {
		return nil, errors.Join(errors.New("give one query at a time"), rest.Close(), stmt.Close())
	}
	return stmt, nil
}

// prepareChecked returns a query with its checks, or nil if it needs none. If the checks cannot be
// added, it adds a note.
func prepareChecked(db *sqlite3.Conn, asked *question, words *edits, columns int) *sqlite3.Stmt {
	areSome, isSure := asked.addChecks(words)
	if !areSome {
		return nil
	}
	if isSure {
		stmt, err := prepareOne(db, asked.write(words))
		if err == nil && stmt.ColumnCount() == columns {
			return stmt
		}
		if err == nil {
			_ = stmt.Close()
		}
	}
	asked.tell("unchecked", "the query is too unusual to check its quotients and casts: SQLite cuts the quotient "+
		"of two integers, and takes the digits at the beginning of a text for a number, or 0")
	return nil
}

// hasBigs reports whether a table has a column with integers of more than 64 bits.
func (t *Tables) hasBigs() bool {
	return slices.ContainsFunc(t.list, func(t *table) bool {
		return slices.ContainsFunc(t.columns, func(c column) bool { return c.kind == typeBig })
	})
}

// readsBigs reports whether a query reads a column with integers of more than 64 bits.
func (t *Tables) readsBigs(read *reads) bool {
	for _, table := range t.list {
		for i := range table.columns {
			if c := &table.columns[i]; c.kind == typeBig && read.includes(table, c) {
				return true
			}
		}
	}
	return false
}

// explain returns an error that tells the model what to do.
func (t *Tables) explain(ctx context.Context, sql string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, sqlite3.NOMEM):
		return fmt.Errorf("sql: the query needs more than %s of memory: select fewer columns, group less "+
			"finely, or add a LIMIT to ORDER BY", quantity.IBytes(t.limits.Memory))
	case errors.Is(err, sqlite3.FULL):
		most := quantity.IBytes(t.limits.Disk)
		return fmt.Errorf("sql: the query sorts more than the disk has room for, or more than %s: select fewer "+
			"columns, filter by WHERE, or sort a smaller part", most)
	case errors.Is(err, sqlite3.IOERR_GETTEMPPATH):
		return fmt.Errorf("sql: the query sorts more than fits in %s of memory, and the system has no folder for "+
			"temporary files: set TMPDIR, or select fewer columns",
			quantity.IBytes(t.limits.Memory/sortShare))
	case isDescription.MatchString(sql):
		return errors.New("sql: only SELECT is possible; the tables are:\n" + t.Describe())
	case errors.Is(err, sqlite3.AUTH), strings.HasSuffix(err.Error(), "may not be modified"):
		return errors.New("sql: only SELECT is possible: the tables are read-only")
	}

	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "sqlite3: "), "SQL logic error: ")
	text = "sql: " + text
	switch {
	case strings.Contains(text, "no such table"):
		_, name, _ := strings.Cut(text, "no such table: ")
		if files := t.shared[strings.ToLower(name)]; len(files) > 1 {
			const most = 5
			text += fmt.Sprintf("; several files have that name (%s): give one a name of its own, with --context "+
				"name=PATH", strings.Join(files[:min(len(files), most)], ", "))
		}
		text += "; " + t.listTables()
	case strings.Contains(text, "no such column: "):
		text += t.listColumns(sql, text)
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
