package tablesql

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"
)

// noteKey is the key of the function for notes in a context.
type noteKey struct{}

// WithNotes returns a context whose queries call note, once for each column, if they compare or
// compute with a column that has text among its numbers.
func WithNotes(ctx context.Context, note func(format string, args ...any)) context.Context {
	var mu sync.Mutex
	seen := map[string]bool{}

	return context.WithValue(ctx, noteKey{}, func(about, format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if !seen[about] {
			seen[about] = true
			note(format, args...)
		}
	})
}

const (
	noteMixture = "sql: column %s has texts among its numbers, such as %q: SQLite sorts them after " +
		"all numbers, and computes with the number at their beginning, or 0; convert them with " +
		"replace and cast, turn them into NULL with nullif, or filter them with WHERE"
	noteTexts = "sql: column %s has texts such as %q: if the query compares it with a number, " +
		"SQLite compares both as texts"
	noteEmpty   = "sql: column %s has empty texts, which are not NULL: compare with '', or use nullif"
	noteBlend   = "sql: column %s has true or false among its numbers: true counts as 1, and false as 0"
	noteRounded = "sql: column %s has numbers of more than 17 digits: each is the nearest float"
	noteLonger  = "sql: line %[2]d of table %[1]s has more values than there are columns: they are " +
		"not in the table"
)

// strictColumns returns the columns with numbers that a query compares or computes with, so that
// text among them is an error; it returns nil if there are no such columns.
func (t *table) strictColumns(q *question) []bool {
	const risky = useCompare | useQuoted | useExtreme | useOrder | useCompute | useCast

	strict, isAny := make([]bool, len(t.columns)), false
	for i := range t.columns {
		c := &t.columns[i]
		uses := q.uses(c.name)
		mayMix := c.kind != typeText && t.layout.Columns != nil || c.mixed != ""
		strict[i] = mayMix && uses&risky != 0 && uses&useForm == 0
		isAny = isAny || strict[i]
	}

	if !isAny {
		return nil
	}
	return strict
}

// sortedColumns returns the columns whose missing values a query sorts before all others without
// NULLS FIRST, or nil if there are none. If the query compares a column or tests it for NULL, the
// missing values may already be excluded.
func (t *table) sortedColumns(q *question) []use {
	const asks = useCompare | useQuoted | useEqual | useUnequal | useNull

	sorted, isAny := make([]use, len(t.columns)), false
	for i := range t.columns {
		if uses := q.uses(t.columns[i].name); uses&asks == 0 {
			sorted[i] = uses & (useAscending | useLast)
			isAny = isAny || sorted[i] != 0
		}
	}
	if !isAny {
		return nil
	}
	return sorted
}

// nullsFirst returns which columns of a result are keys of an ORDER BY that sorts NULL first
// without NULLS FIRST; it returns nil if there are none.
func (q *question) nullsFirst(names []string) []bool {
	by := len(q.tokens) - 1
	for ; by > 0; by-- {
		if q.at(by).is(")") {
			by = min(by, q.pairs[by])
		} else if q.at(by).is("by") && q.at(by-1).is("order") {
			break
		}
	}
	if by <= 0 {
		return nil
	}

	var first []bool
	for i := by + 1; i < len(q.tokens); {
		key := q.operandFrom(i, 0)
		text := q.sql[q.at(key.first).from:q.at(key.last).to]
		if q.at(key.last).kind == tokenQuoted || key.name != "" {
			text = q.at(key.last).text
		}
		place := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, text) })
		if n, err := strconv.Atoi(text); err == nil {
			place = n - 1
		}
		if 0 <= place && place < len(names) && q.isAscending(key.last) {
			if first == nil {
				first = make([]bool, len(names))
			}
			first[place] = true
		}

		for i = max(i, key.last) + 1; i < len(q.tokens) && !q.at(i).is(","); i++ {
			if q.at(i).is("limit", "offset") {
				return first
			}
		}
		i++
	}
	return first
}

// tellNull adds a note that sorted rows begin with NULL.
func (q *question) tellNull(name string) {
	q.tell("null", "ORDER BY puts NULL first, and %s has some: write NULLS LAST to have them at the end, as DuckDB "+
		"does, or NULLS FIRST", name)
}

// nameColumn returns the names of a column and its table, for notes.
func (t *table) nameColumn(n int) string {
	return showName(t.columns[n].name) + " of " + t.listNames()[0]
}

// explainMixed returns the error for text among the numbers of a column.
func (t *table) explainMixed(n int, text string) error {
	c := &t.columns[n]
	name, quoted := showName(c.name), sqlite3.Quote(text)
	option := ""
	if t.layout.Columns != nil {
		option = "; the option nullstr=" + text + " reads them as missing"
	}
	return fmt.Errorf("column %s of %s has texts among its numbers, such as %q, and SQLite would "+
		"compare them as texts or compute with 0: leave them out with nullif(%s, %s) or "+
		"WHERE %s <> %s, or convert them with replace and cast%s",
		name, t.listNames()[0], text, name, quoted, name, quoted, option)
}

// checkUses refuses a query that would compare numbers as text, or round integers.
func (t *Tables) checkUses(ctx context.Context, db *sqlite3.Conn, q *question, read *reads) error {
	for _, table := range t.list {
		isRead := func(c column) bool { return read.includes(table, &c) }
		isJoined := q.hasWord("join", "using") && table.isIn(q)
		if !isJoined && !slices.ContainsFunc(table.columns, isRead) {
			continue
		}
		if err := table.learnKinds(ctx, db, read); err != nil {
			return err
		}
	}

	t.nameColumns(q, read)
	for _, table := range t.list {
		for i := range table.columns {
			c := &table.columns[i]
			if !read.includes(table, c) {
				continue
			}
			if c.kind == typeBig || c.mixed != "" || c.code != "" || c.class.isText() {
				if err := table.checkColumn(i, q); err != nil {
					return err
				}
			}
		}
	}
	return q.judge()
}

// nameColumns records the columns that a query reads. A name shared by several columns, or that the
// query also gives to something else, does not refer to a column.
func (t *Tables) nameColumns(q *question, read *reads) {
	q.names = map[string]operand{}
	for _, table := range t.list {
		for i := range table.columns {
			c := &table.columns[i]
			if !read.includes(table, c) {
				continue
			}
			name := strings.ToLower(c.name)
			_, isShared := q.names[name]
			q.names[name] = operand{}
			if !isShared {
				q.names[name] = operand{class: c.class, affinity: c.affinity(), table: table, column: c}
			}
		}
	}

	q.findAliases()
	q.compared = q.findComparisons()
	t.noteJoins(q)
}

// isOnly reports whether the name of a column has no other meaning in the query.
func (q *question) isOnly(c *column) bool { return q.names[strings.ToLower(c.name)].column == c }

func (t *table) checkColumn(n int, q *question) error {
	c := &t.columns[n]
	uses, isOnly := q.uses(c.name), q.isOnly(c)
	const compares = useCompare | useQuoted | useEqual | useExtreme | useOrder
	name, table := showName(c.name), t.listNames()[0]

	switch {
	case c.kind == typeBig && uses&(useCompute|useCast) != 0:
		return fmt.Errorf("column %s of %s has integers of more than 64 bits, and SQLite would round "+
			"them: select them and compute in the snippet", name, table)
	case uses&useForm != 0:
		return nil
	case isOnly && c.class.isText() && uses&useCompute != 0:
		return fmt.Errorf("column %s of %s has texts%s, and the query computes with it: SQLite would take the "+
			"digits at the beginning, or 0; make numbers of the texts first, with substr or replace and CAST, count "+
			"days with julianday(%s), or join texts with ||", name, table, c.example(), name)
	case isOnly && c.class.isText() && uses&useCondition != 0:
		return fmt.Errorf("column %s of %s has texts%s, and SQLite takes them for false: compare with a text, as in "+
			"%s = 'true'", name, table, c.example(), name)
	case t.isDatabase() && c.mixed != "" && uses&(compares|useCompute|useCast)&^useEqual != 0 && !q.mentions(c.mixed):
		return t.explainMixed(n, c.mixed)
	case c.kind != typeText:
		return nil
	case c.mixed != "" && uses&(compares|useCompute|useCast) != 0:
		return fmt.Errorf("column %s of %s has texts among its numbers, such as %q, so SQLite "+
			"compares all of them as texts and computes with the digits at their beginning, or 0: "+
			"convert them first, as in CAST(replace(%s, ',', '') AS REAL), or set an option such as "+
			"thousands=, or decimal=,; || '' after the name compares texts",
			name, table, c.mixed, name)
	case c.code != "" && (uses&(useCompare|useEqual) != 0 || c.isUneven && uses&(useExtreme|useOrder) != 0):
		return fmt.Errorf("column %s of %s has codes such as %q, which SQLite compares as texts: "+
			"compare with a text such as '%s', or with CAST(%s AS INTEGER)",
			name, table, c.code, c.code, name)
	}
	return nil
}

// explainText returns the error for a text column that the query compares with a number by <, > or
// the like.
func (t *table) explainText(c *column) error {
	return fmt.Errorf("column %s of %s has texts%s, and SQLite would compare the number as a text: compare with a "+
		"text in quotes, or make numbers of the texts first, with substr or replace and CAST",
		showName(c.name), t.listNames()[0], c.example())
}

// example returns text from the column for an error.
func (c *column) example() string {
	if c.text == "" {
		return ""
	}
	return fmt.Sprintf(" such as %q", c.text)
}

// affinity returns the kind to which SQLite converts the other side of a comparison.
func (c *column) affinity() affinity {
	switch c.kind {
	case typeInteger, typeReal:
		return affinityNumber
	case typeText:
		return affinityText
	}
	return c.declared
}

// reads records the columns that a query reads.
type reads struct {
	columns [][2]string // table and name
}

// authorize allows the same actions as the function authorize, and records the columns that are
// read.
func (r *reads) authorize(
	action sqlite3.AuthorizerActionCode, name3rd, name4th, schema, inner string,
) sqlite3.AuthorizerReturnCode {
	if action == sqlite3.AUTH_READ && len(r.columns) < maxColumns {
		r.columns = append(r.columns, [2]string{name3rd, name4th})
	}
	return authorize(action, name3rd, name4th, schema, inner)
}

// includes reports whether a query reads a column.
func (r *reads) includes(t *table, c *column) bool {
	return slices.ContainsFunc(r.columns, func(one [2]string) bool {
		return strings.EqualFold(one[1], c.name) && t.isNamed(one[0])
	})
}

// noteColumns reports problems that the result of a query does not show: columns with text among
// their numbers if the query compares them, text that it may compare with a number, empty strings,
// rounded numbers, and values beyond the last column.
func (t *Tables) noteColumns(ctx context.Context, q *question, read *reads) {
	note, isWanted := ctx.Value(noteKey{}).(func(about, format string, args ...any))
	if !isWanted {
		return
	}
	for _, one := range q.notes {
		note(one.about, "sql: %s", one.text)
	}

	const compares = useCompare | useExtreme | useCompute | useSort | useNull
	all := q.usesOfAll()

	isMixed := all&compares != 0 && all&(useForm|useChange) == 0
	for _, table := range t.list {
		for i := range table.columns {
			if c := &table.columns[i]; read.includes(table, c) {
				table.noteColumn(i, q, isMixed, note)
			}
		}
		if line := table.long.Load(); line > 0 {
			own := table.listNames()[0]
			note(own, noteLonger, own, line)
		}
	}
}

// noteColumn reports problems of a column that the result does not show. If isMixed, the query
// compares the values unchanged.
func (t *table) noteColumn(n int, q *question, isMixed bool, note func(about, format string, args ...any)) {
	c := &t.columns[n]
	name := t.nameColumn(n)

	text := c.mixed
	if found := t.late.Load(); text == "" && found != nil && found.column == n {
		text = found.text
	}

	switch {
	case c.isLong:
		note(name+" rounded", noteRounded, name)
	case text != "" && isMixed && !q.mentions(text):
		note(name, noteMixture, name, text)
	case text == "" && c.class.isText() && !q.isOnly(c) && q.uses(c.name)&(useNumber|useForm) == useNumber:
		note(name, noteTexts, name, c.text)
	case c.isBlend && q.hasWord("group", "distinct", "union"):
		note(name, noteBlend, name)
	case c.hasEmpty && !q.mentions("") && !q.hasWord("left", "full", "outer") &&
		q.uses(c.name)&(useNull|useLeast|useUnequal) != 0:
		note(name, noteEmpty, name)
	}
}

// isNamed reports whether a query can refer to the table by a name.
func (t *table) isNamed(name string) bool {
	isSame := func(own string) bool { return strings.EqualFold(own, name) }
	return slices.ContainsFunc(t.unqualified(), isSame) || isSame(t.inside.table)
}

// lateText is text in a column of numbers, after the rows that determined its type.
type lateText struct {
	column int
	text   string
}

// noteLate records the first such text.
func (t *table) noteLate(column int, value []byte) {
	if t.late.Load() == nil {
		text := strings.ToValidUTF8(string(value[:min(len(value), 40)]), "")
		t.late.CompareAndSwap(nil, &lateText{column, text})
	}
}
