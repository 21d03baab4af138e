package session

import (
	"bytes"
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tables"
)

// rowRequest is the request of a guest that reads the rows of a text from a to b. The operation w asks how the
// text in CSV is a table; its operand is the byte between fields, or nothing. To n for lines, j for JSON
// Lines and v for CSV, the operand is the number of the line at a. For v, these follow:
//
//   - how many rows it wants at most;
//   - how many characters a field may have;
//   - the byte between fields, the byte that quotes them, and l for lists or d for dicts;
//   - for dicts, the names of the columns, with NUL between them.
//
// The answers are those of [tables.Batch] and [tables.Layout].
type rowRequest struct {
	text *bigtext.Text
	op   byte
	a, b int64
	body string
}

// rowsAhead is the answer to the request that a guest makes next, if it reads on. The host
// decodes the rows while the guest works with those before. A loop that loads JSON from lines has
// two: for the lines, and for their values.
type rowsAhead struct {
	request rowRequest
	done    chan struct{} // closed when there are the following
	reply   Reply
	next    *rowRequest
}

// rows answers a request, and begins with the next one.
func (a *Accounts) rows(ctx context.Context, r rowRequest) Reply {
	ahead := a.ahead[r.op]
	delete(a.ahead, r.op)
	var reply Reply
	var next *rowRequest
	if ahead != nil && ahead.request == r {
		select {
		case <-ahead.done:
		case <-ctx.Done():
			return fail(context.Cause(ctx))
		}
		reply, next = ahead.reply, ahead.next
	} else {
		reply, next = r.answer(ctx)
	}

	if next != nil {
		a.readAhead(*next)
	}
	return reply
}

// readAhead answers a request that the guest has not made. The snippet's end waits for it, which
// takes little time.
func (a *Accounts) readAhead(r rowRequest) {
	ahead := &rowsAhead{request: r, done: make(chan struct{})}
	ctx := a.calls.ctx
	a.calls.running.Go(func() {
		defer close(ahead.done)
		ahead.reply, ahead.next = r.answer(ctx)
	})
	a.ahead[r.op] = ahead
}

// answer returns the reply, and the request that reads on, nil if there are no more rows.
func (r rowRequest) answer(ctx context.Context) (reply Reply, further *rowRequest) {
	lo, hi, err := r.text.ByteRange(ctx, r.a, r.b)
	if err != nil {
		return fail(err), nil
	}
	data, err := r.text.Raw(0, hi)
	if err != nil {
		return fail(err), nil
	}

	var next int
	var line int64
	var encode func(next int64) []byte
	var wrong error
	err = bigtext.Guard(r.text, func() {
		next, line, encode, wrong = readRows(r.op, data, int(lo), []byte(r.body))
	})
	if err = cmp.Or(err, wrong); err != nil {
		return fail(err), nil
	}
	at, err := r.text.CharOffset(ctx, int64(next))
	if err != nil {
		return fail(err), nil
	}
	if r.op != 'w' && r.a < at && at < r.b {
		_, operands, _ := strings.Cut(r.body, ",")
		further = &rowRequest{r.text, r.op, at, r.b, strconv.FormatInt(line, 10) + "," + operands}
	}
	return Reply{Data: encode(at)}, further
}

// readRows returns the answer without an offset, which is next in bytes, and the number of the
// line there.
func readRows(
	op byte, data []byte, from int, body []byte,
) (next int, nextLine int64, encode func(next int64) []byte, err error) {
	if op == 'w' {
		delimiter := byte(0)
		if len(body) == 1 {
			delimiter = body[0]
		}
		layout, err := tables.FindLayout(data, from, delimiter)
		return layout.First, layout.Line, layout.Encode, err
	}

	line, body, err := cutNumbers(body, 1, true)
	if err != nil {
		return 0, 0, nil, err
	}
	var batch *tables.Batch
	switch op {
	case 'n':
		batch = tables.Lines(data, from, line[0])
	case 'j':
		batch, err = tables.JSONLines(data, from, line[0])
	default:
		batch, err = csvRows(data, from, line[0], body)
	}
	if err != nil {
		return 0, 0, nil, err
	}
	return batch.Next, batch.Line, batch.Encode, nil
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
