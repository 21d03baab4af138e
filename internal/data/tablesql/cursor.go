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
	ctx context.Context // of the query
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
	c := cursor{table: s.table, ctx: s.ctx, text: text}
	if s.places != nil {
		return &jsonCursor{cursor: c, values: make([][]byte, len(s.columns))}, nil
	}
	return &csvCursor{cursor: c}, nil
}

// cursor reads the rows of a table in order.
type cursor struct {
	table *table
	ctx   context.Context //nolint:containedctx // as above
	text  *bigtext.Text   // contains the rows
	rows  *tables.Scanner
	row   int64
	atEnd bool
}

// begin returns to the first row.
func (c *cursor) begin() {
	c.rows, c.row, c.atEnd = c.table.scan(c, c.text.Size()), 0, false
}

// ReadAt reads the text of the rows. It ends with the query, because a scan of blank lines returns
// no rows.
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

	fields [][]byte
}

func (c *csvCursor) Filter(int, string, ...sqlite3.Value) error {
	c.begin()
	return c.Next()
}

func (c *csvCursor) Next() (err error) {
	c.fields, err = c.rows.NextFields()
	return c.moved(err)
}

func (c *csvCursor) Column(ctx sqlite3.Context, n int) error {
	if n < len(c.fields) {
		give(ctx, c.fields[n], c.table.columns[n].kind)
	}
	return nil
}

// jsonCursor reads rows of JSON Lines.
type jsonCursor struct {
	cursor

	line   []byte
	values [][]byte // as written; nil for one missing from the line
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
	} else {
		giveJSON(ctx, c.values[n])
	}
	return nil
}
