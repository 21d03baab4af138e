package tablesql

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tables"
)

// scanned is a table within a query.
type scanned struct {
	*table
	ctx   context.Context // the query's context
	asked *question

	isOpen bool
	strict []bool // the columns that the query compares or computes with
	sorted []use  // the columns whose missing values are sorted first
}

// BestIndex reports the cost of a scan, which always reads the whole table.
func (s *scanned) BestIndex(info *sqlite3.IndexInfo) error {
	info.EstimatedRows = max(1, s.Text.Size()/100)
	info.EstimatedCost = float64(s.Text.Size())
	return nil
}

// Open begins a scan.
func (s *scanned) Open() (sqlite3.VTabCursor, error) {
	text, err := s.rows(s.ctx)
	if err != nil {
		return nil, err
	}
	if !s.isOpen {
		s.isOpen, s.strict, s.sorted = true, s.strictColumns(s.asked), s.sortedColumns(s.asked)
	}
	c := cursor{table: s.table, ctx: s.ctx, text: text, asked: s.asked, strict: s.strict, sorted: s.sorted}
	if s.places != nil {
		return &jsonCursor{cursor: c, values: make([][]byte, len(s.columns))}, nil
	}
	return &csvCursor{cursor: c, values: s.layout.Values, isPlain: s.layout.Values.IsZero()}, nil
}

// cursor reads the rows of a table in order.
type cursor struct {
	table *table
	ctx   context.Context //nolint:containedctx // as above
	text  *bigtext.Text   // contains the rows
	rows  *tables.Scanner
	row   int64
	atEnd bool

	asked  *question
	strict []bool // see scanned
	sorted []use
}

// sawNull adds a note that a column has a missing value, if the query sorts by the column.
func (c *cursor) sawNull(n int) {
	if n < len(c.sorted) && c.sorted[n]&useAscending != 0 {
		c.sorted[n] = 0
		c.asked.tellNull(c.table.nameColumn(n))
	}
}

// sawEmpty adds a note that a column has an empty string, if the query sorts by the column.
func (c *cursor) sawEmpty(n int) {
	if n < len(c.sorted) && c.sorted[n] != 0 {
		c.sorted[n] = 0
		name := showName(c.table.columns[n].name)
		c.asked.tell("null "+name, "ORDER BY puts the empty texts in column %s first: they are not NULL; to have "+
			"missing values last, write ORDER BY nullif(%s, '') NULLS LAST", c.table.nameColumn(n), name)
	}
}

// refuse returns an error if the query compares or computes with a column that has text among its
// numbers, unless the query mentions the text.
func (c *cursor) refuse(n int, text []byte) error {
	if len(c.strict) <= n || !c.strict[n] || c.asked.mentions(string(text)) {
		return nil
	}
	return c.table.explainMixed(n, string(text[:min(len(text), longestShown)]))
}

// begin returns to the first row.
func (c *cursor) begin() {
	c.rows, c.row, c.atEnd = c.table.scan(c, c.text.Size()), 0, false
}

// ReadAt reads the text of the rows. It checks the query's context, because a scan of blank lines
// returns no rows.
func (c *cursor) ReadAt(p []byte, off int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.text.ReadAt(p, off)
}

// moved records the outcome of reading a row.
func (c *cursor) moved(err error) error {
	c.row++
	if errors.Is(err, io.EOF) {
		c.atEnd = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", c.table.listNames()[0], err)
	}
	return nil
}

func (c *cursor) EOF() bool { return c.atEnd }

func (c *cursor) RowID() (int64, error) { return c.row, nil }

// csvCursor reads CSV rows.
type csvCursor struct {
	cursor

	fields  [][]byte
	values  tables.Values
	isPlain bool // the values are written in the usual way
}

func (c *csvCursor) Filter(int, string, ...sqlite3.Value) error {
	c.begin()
	return c.Next()
}

func (c *csvCursor) Next() (err error) {
	c.fields, err = c.rows.NextFields()
	if len(c.fields) > len(c.table.columns) && err == nil && hasContent(c.fields[len(c.table.columns):]) {
		c.table.long.CompareAndSwap(0, c.rows.Line()-1)
	}
	return c.moved(err)
}

func (c *csvCursor) Column(ctx sqlite3.Context, n int) error {
	if n >= len(c.fields) {
		c.sawNull(n)
		return nil
	}
	value := c.fields[n]
	if !c.isPlain {
		if value = normalise(value, &c.values); value == nil && c.fields[n] != nil {
			c.sawNull(n)
			return nil
		}
	}

	kind := c.table.columns[n].kind
	if c.sorted != nil && kindOf(value) == kindNull {
		if kind != typeText {
			c.sawNull(n)
		} else if len(value) == 0 {
			c.sawEmpty(n)
		}
	}
	if isLate := give(ctx, value, kind); isLate {
		c.table.noteLate(n, value)
		return c.refuse(n, value)
	}
	return nil
}

// jsonCursor reads rows of JSON Lines.
type jsonCursor struct {
	cursor

	line   []byte
	values [][]byte // undecoded; nil for a value missing from the line
}

func (c *jsonCursor) Filter(int, string, ...sqlite3.Value) error {
	c.begin()
	return c.Next()
}

func (c *jsonCursor) Next() (err error) {
	c.line, err = c.rows.NextLine()
	if err := c.moved(err); err != nil || c.atEnd {
		return err
	}

	clear(c.values)
	isObject := tables.Members(c.line, func(key, value []byte) {
		if place, isColumn := c.table.places[string(key)]; isColumn {
			c.values[place] = value
		}
	})
	if !isObject {
		return c.moved(notObject(c.rows.Line() - 1))
	}
	return nil
}

func (c *jsonCursor) Column(ctx sqlite3.Context, n int) error {
	if n == len(c.values) {
		ctx.ResultRawText(c.line)
		return nil
	}

	value, column := c.values[n], &c.table.columns[n]
	if len(value) == 0 || value[0] == 'n' {
		c.sawNull(n)
	}
	if isLate := giveJSON(ctx, value, column.kind == typeBig); isLate && column.shown == "" {
		return fmt.Errorf("line %d: column %s has the integer %.40s of more than 64 bits, unlike the first rows, and "+
			"SQLite would round it: read the rows with json_lines()", c.rows.Line()-1, showName(column.name), value)
	}
	if column.mixed != "" && len(value) > 0 && value[0] == '"' {
		if text, isText := tables.String(value); isText && len(text) > 0 {
			return c.refuse(n, text)
		}
	}
	return nil
}
