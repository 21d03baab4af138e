package session

import (
	"bytes"
	"cmp"
	"context"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/internal/tables"
)

// rows answers a guest that reads the rows of a text from a to b. The operation w asks how the
// text in CSV is a table; its operand is the byte between fields, or nothing. To j and v, the
// operand is the number of the line at a. For v, these follow:
//
//   - how many rows it wants at most;
//   - how many characters a field may have;
//   - the byte between fields, the byte that quotes them, and l for lists or d for dicts;
//   - for dicts, the names of the columns, with NUL between them.
//
// The answers are those of [tables.Batch] and [tables.Layout].
func rows(ctx context.Context, t *bigtext.Text, op byte, a, b int64, body []byte) Reply {
	lo, hi, err := t.ByteRange(ctx, a, b)
	if err != nil {
		return fail(err)
	}
	data, err := t.Raw(0, hi)
	if err != nil {
		return fail(err)
	}

	var next int
	var encode func(next int64) []byte
	var wrong error
	err = bigtext.Guard(t, func() { next, encode, wrong = readRows(op, data, int(lo), body) })
	if err = cmp.Or(err, wrong); err != nil {
		return fail(err)
	}
	at, err := t.CharOffset(ctx, int64(next))
	if err != nil {
		return fail(err)
	}
	return Reply{Data: encode(at)}
}

// readRows returns the answer without an offset, which is next in bytes.
func readRows(
	op byte, data []byte, from int, body []byte,
) (next int, encode func(next int64) []byte, err error) {
	if op == 'w' {
		delimiter := byte(0)
		if len(body) == 1 {
			delimiter = body[0]
		}
		layout, err := tables.FindLayout(data, from, delimiter)
		return layout.First, layout.Encode, err
	}

	line, body, err := cutNumbers(body, 1, true)
	if err != nil {
		return 0, nil, err
	}
	var batch *tables.Batch
	if op == 'j' {
		batch, err = tables.JSONLines(data, from, line[0])
	} else {
		batch, err = csvRows(data, from, line[0], body)
	}
	if err != nil {
		return 0, nil, err
	}
	return batch.Next, batch.Encode, nil
}

func csvRows(data []byte, from int, line int64, body []byte) (*tables.Batch, error) {
	bounds, body, err := cutNumbers(body, 2, true)
	if err != nil || len(body) < 3 {
		return nil, errRequest
	}
	dialect := tables.Dialect{Delimiter: body[0], Quote: body[1], Limit: int(bounds[1])}
	if err := dialect.Check(); err != nil {
		return nil, err
	}

	var names [][]byte
	if body[2] == 'd' {
		if bytes.Count(body, []byte{0}) >= tables.MaxFields {
			return nil, errRequest
		}
		names = bytes.Split(body[3:], []byte{0})
	}
	return tables.CSVRows(data, from, line, dialect, names, int(bounds[0])), nil
}
