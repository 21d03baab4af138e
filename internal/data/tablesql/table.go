package tablesql

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tables"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Source is a text that may be a table or contain tables, with its names in queries.
type Source struct {
	Names []string
	// File is the name of the text's file, or empty if it is unknown. Queries may use it, with or
	// without its extensions, if nothing else has that name.
	File string
	Text *bigtext.Text
}

// IsTable reports whether the text is CSV or JSON Lines, or comes from a file with tables.
func (s Source) IsTable() bool {
	if s.Text == nil || len(s.Text.Tables()) > 0 {
		return s.Text != nil
	}
	return !s.Text.IsBinary() && (s.Text.Kind() == bigtext.KindCSV || s.Text.Kind() == bigtext.KindJSONL)
}

// isDatabase reports whether SQLite itself reads the file.
func (s Source) isDatabase() bool { return s.Text.Kind() == KindDatabase }

// table is a table with known columns.
type table struct {
	Source           // with the names of the table
	number int       // in the file; -1 if the text itself is the table
	inside placeName // its place among the tables of the file

	once    sync.Once
	err     error // why it cannot be read
	layout  tables.Layout
	columns []column
	taken   map[string]bool // the names of CSV columns, in lower case
	places  map[string]int  // the columns of JSON Lines, by key as written
	late    atomic.Pointer[lateText]
	long    atomic.Int64 // the line of the first row with more values than columns, or 0

	learning  sync.Mutex
	isLearned atomic.Bool // see learnKinds
}

// newTables returns the tables of a source.
func newTables(source Source, schema string) []*table {
	all := source.Text.Tables()
	if len(all) == 0 {
		return []*table{{Source: source, number: -1}}
	}

	var list []*table
	taken := map[string]bool{}
	for i, found := range all {
		t := &table{Source: Source{Text: source.Text}, number: i}
		if i == 0 {
			t.Names, t.File = source.Names, source.File
		}
		if schema != "" && found.Name != "" {
			t.inside = placeName{schema, makeUnique(found.Name, taken)}
		}
		if i == 0 || t.inside.table != "" { // others have no name by which a query can refer to them
			list = append(list, t)
		}
	}
	return list
}

// placeName is the name of a table within a schema, which is a context of several tables.
type placeName struct{ schema, table string }

func (p placeName) String() string { return showName(p.schema) + "." + showName(p.table) }

// quote returns the name quoted for SQL.
func (p placeName) quote() string { return quoteName(p.schema) + "." + quoteName(p.table) }

// listNames returns all names of the table, as written in queries.
func (t *table) listNames() []string {
	var names []string
	for _, name := range t.Names {
		names = append(names, showName(name))
	}
	if t.inside.table != "" {
		names = append(names, t.inside.String())
	}
	if len(names) == 0 {
		names = append(names, showName(t.File))
	}
	return names
}

// rows returns the text that contains the rows.
func (t *table) rows(ctx context.Context) (*bigtext.Text, error) {
	if t.number < 0 {
		return t.Text, nil
	}
	return t.Text.Table(ctx, t.number)
}

// column has one of the types in numbers.go, or none.
type column struct {
	name, kind string
	shown      string // the type in a prompt, if it differs from kind
	mixed      string // text among its numbers, if any
	code       string // a code such as 007, if all values are digits
	text       string // text that is not a number, if any
	class      class  // of all values in the first rows
	isUneven   bool   // the codes differ in length
	isLong     bool   // some numbers have more digits than a float
	hasEmpty   bool   // some CSV values are empty
	hasDigits  bool   // some JSON strings may be numbers
	isBlend    bool   // true and false are among JSON numbers

	declared affinity // in a database
}

// These bounds apply to a table.
const (
	maxColumns = 1000
	// sampleRows is the number of rows from which types and key columns are determined.
	sampleRows  = 10_000
	sampleBytes = 16 << 20
	maxRow      = 8 << 20 // bytes, as in package tables
)

// prepare determines the columns, once.
func (t *table) prepare() error {
	t.once.Do(func() { t.err = t.findColumns() })
	return t.err
}

func (t *table) findColumns() error {
	if t.number >= 0 {
		return t.takeColumns(t.Text.Tables()[t.number].Columns)
	}
	if t.Text.Kind() == bigtext.KindJSONL {
		return t.findKeys()
	}

	data, err := t.Text.Raw(0, t.Text.Size())
	if err != nil {
		return err
	}

	var wrong error
	err = bigtext.Guard(t.Text, func() { t.layout, wrong = tables.FindLayout(data, 0, t.Text.CSV()) })
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	if err := checkColumns(len(t.layout.Columns)); err != nil {
		return err
	}

	for _, name := range t.layout.Columns {
		t.addColumn(string(name))
	}
	return t.findTypes()
}

// addColumn adds a CSV column.
func (t *table) addColumn(name string) {
	if t.taken == nil {
		t.taken = map[string]bool{}
	}
	t.columns = append(t.columns, column{name: makeUnique(name, t.taken)})
}

func checkColumns(count int) error {
	if count > maxColumns {
		return fmt.Errorf("the table has %d columns, but a query can use at most %d", count, maxColumns)
	}
	return nil
}

// takeColumns uses the columns defined by the file.
func (t *table) takeColumns(columns []bigtext.Column) error {
	if err := checkColumns(len(columns)); err != nil {
		return err
	}

	taken := map[string]bool{lineColumn: true}
	t.places = map[string]int{}
	for i, found := range columns {
		c := column{name: makeUnique(found.Name, taken), shown: found.Type}
		if strings.Contains(strings.ToLower(found.Type), "uint64") {
			c.kind = typeBig
		}
		if !t.isDatabase() {
			c.class = classOf(found.Type)
			c.hasDigits = c.class == classText && found.Type == "string"
		}
		t.columns = append(t.columns, c)
		for _, key := range tables.Keys(found.Name) {
			t.places[key] = i
		}
	}
	return nil
}

// makeUnique returns a name that differs from the taken ones, even for SQLite, which ignores the
// case of ASCII letters.
func makeUnique(name string, taken map[string]bool) string {
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "\uFFFD")

	unique := name
	for i := 2; taken[strings.ToLower(unique)]; i++ {
		unique = fmt.Sprintf("%s_%d", name, i)
	}
	taken[strings.ToLower(unique)] = true
	return unique
}

// scan returns a scanner of the rows, which occupy size bytes.
func (t *table) scan(rows io.ReaderAt, size int64) *tables.Scanner {
	return tables.NewScanner(rows, size, int64(t.layout.First), max(1, t.layout.Line), t.layout.Dialect)
}

// sample returns a scanner of the first rows.
func (t *table) sample() *tables.Scanner {
	return t.scan(t.Text, min(t.Text.Size(), int64(t.layout.First)+sampleBytes+maxRow))
}

// findTypes chooses the types from the first rows. A column of numbers is INTEGER or REAL if each
// value can be written back unchanged.
func (t *table) findTypes() error {
	rows := t.sample()
	found := make([]kinds, len(t.columns))
	values := &t.layout.Values

	for range sampleRows {
		fields, err := rows.NextFields()
		if errors.Is(err, io.EOF) || rows.Offset() > sampleBytes {
			break
		}
		if err != nil {
			return err
		}

		for len(fields) > len(found) && len(found) < maxColumns && hasContent(fields[len(found):]) {
			t.addColumn(tables.ColumnName(len(found)))
			found = append(found, kinds{}) //nolint:makezero // a row is longer than the header
		}
		for i := range min(len(fields), len(found)) {
			if values.IsZero() {
				found[i].note(fields[i])
			} else if value := normalise(fields[i], values); value != nil {
				found[i].note(value)
			}
		}
	}

	for i := range t.columns {
		t.columns[i].kind = found[i].choose()
		t.columns[i].describeKinds(&found[i])
	}
	return nil
}

// hasContent reports whether a field is not empty.
func hasContent(fields [][]byte) bool {
	return slices.ContainsFunc(fields, func(field []byte) bool { return len(field) > 0 })
}

// describeKinds stores the facts that queries need about the values of a column.
func (c *column) describeKinds(found *kinds) {
	c.mixed = found.findMixed()
	if found.codes > 0 && found.others+found.locals+found.reals == 0 {
		c.code, c.isUneven = found.code, found.isUneven
	}
	c.isLong = found.isLong && c.kind != typeText
	switch {
	case c.kind == typeText:
		c.text, c.hasEmpty = found.text, found.empties > 0
		if c.text != "" && c.mixed == "" {
			c.class = classText
		}
	case c.kind != typeBig:
		c.class = classNumber
	}
}

// lineColumn is the hidden column of JSON Lines that contains the whole line.
const lineColumn = "_line"

// findKeys adds a column for each key in the first rows.
func (t *table) findKeys() error {
	rows := t.sample()
	t.places = map[string]int{}
	taken := map[string]bool{lineColumn: true}
	found := make([]kinds, 0, 16)

	for range sampleRows {
		line, err := rows.NextLine()
		if errors.Is(err, io.EOF) || rows.Offset() > sampleBytes {
			break
		}
		if err != nil {
			return err
		}

		isObject := tables.Members(line, func(key, value []byte) {
			if place, isKnown := t.places[string(key)]; isKnown || len(t.columns) == maxColumns {
				if isKnown {
					found[place].noteJSON(value)
				}
				return
			}
			if name, isText := tables.String(key); isText {
				t.places[string(bytes.Clone(key))] = len(t.columns)
				t.columns = append(t.columns, column{name: makeUnique(string(name), taken)})
				found = append(found, kinds{})
				found[len(found)-1].noteJSON(value)
			}
		})
		if !isObject {
			return notObject(rows.Line() - 1)
		}
	}

	if len(t.columns) == 0 {
		return errors.New("the table has no rows, so its columns have no names")
	}
	for i := range t.columns {
		if found[i].hasBigs() {
			t.columns[i].kind = typeBig
		}
		t.columns[i].mixed = found[i].findMixed()
		t.columns[i].text = found[i].text
		t.columns[i].hasDigits = found[i].digits > 0
		t.columns[i].class = found[i].findClass()
		t.columns[i].isBlend = found[i].truths > 0 && found[i].integers+found[i].reals > 0
	}
	return nil
}

func notObject(line int64) error {
	return fmt.Errorf("line %d is not a JSON object, so it is not a row", line)
}

// declare returns the statement that declares the columns to SQLite.
func (t *table) declare() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE t(")
	for _, c := range t.columns {
		b.WriteString(quoteName(c.name) + " " + c.kind)
		if c.kind == typeBig {
			b.WriteString(" COLLATE " + collation)
		}
		b.WriteString(", ")
	}
	if t.places != nil {
		b.WriteString(quoteName(lineColumn) + " HIDDEN, ")
	}
	return strings.TrimSuffix(b.String(), ", ") + ")"
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

var plainName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedWords lists the words of SQL that SQLite does not accept as names without quotes.
var reservedWords = strings.Fields("add all alter and as autoincrement between case check collate commit " +
	"constraint create default deferrable delete distinct drop else escape except exists foreign from " +
	"group having if in index insert intersect into is isnull join limit not nothing notnull null on or " +
	"order primary references returning select set table then to transaction union unique update using " +
	"values when where")

// showName quotes a name unless it is a plain one.
func showName(name string) string {
	if plainName.MatchString(name) && !slices.Contains(reservedWords, strings.ToLower(name)) {
		return name
	}
	return quoteName(name)
}

// showKind returns the type of a column as shown to people.
func (c *column) showKind() string {
	if c.shown == "" && c.kind == typeBig {
		return "INTEGER of more than 64 bits"
	}
	return cmp.Or(c.shown, c.kind)
}

// describe returns the columns and their types for a prompt.
func (t *table) describe() string {
	if err := t.prepare(); err != nil {
		return ""
	}

	const most = 30
	var names []string
	for i, c := range t.columns {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(t.columns)-i))
			break
		}
		kind := c.showKind()
		if (t.number < 0 || t.isLearned.Load()) && c.mixed != "" {
			kind = strings.TrimSpace(kind + " with numbers and texts such as " + c.mixed)
		}
		names = append(names, strings.TrimSpace(c.name+" "+kind))
	}
	return fmt.Sprintf("- table %s: columns %q", strings.Join(t.listNames(), " or "), names)
}
