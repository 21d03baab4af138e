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

// rowRequest is a guest's request for the rows of a text from a to b. The operation w requests the
// table layout of a CSV text; its operand is a list of options and their values, separated by NUL,
// see [tables.Options]. For n (lines), j (JSON Lines) and v (CSV), the operand is the number of the
// line at a. For v, these operands follow:
//
//   - the maximum number of rows;
//   - the maximum number of characters in a field;
//   - the byte between fields, the rest of the dialect, see [tables.Dialect.Special], and l for
//     lists or d for dicts;
//   - for dicts, the names of the columns, separated by NUL.
//
// The answers are those of [tables.Batch] and [tables.Layout].
type rowRequest struct {
	text *bigtext.Text
	op   byte
	a, b int64
	body string
}

// rowsAhead is the answer to the expected next request of a guest. The host decodes these rows
// while the guest works on the previous ones. A loop that loads JSON from lines has two such
// answers: for the lines, and for their values.
type rowsAhead struct {
	request rowRequest
	done    chan struct{} // closed when the fields below are set
	reply   Reply
	next    *rowRequest
}

// rows answers a request, and starts to prepare the answer to the next one.
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

// readAhead answers a request that the guest has not made yet. The end of the snippet waits for the
// answer, which takes little time.
func (a *Accounts) readAhead(r rowRequest) {
	ahead := &rowsAhead{request: r, done: make(chan struct{})}
	ctx := a.calls.ctx
	a.calls.running.Go(func() {
		defer close(ahead.done)
		ahead.reply, ahead.next = r.answer(ctx)
	})
	a.ahead[r.op] = ahead
}

// answer returns the reply and the request for the following rows, or nil if there are no more
// rows.
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
		next, line, encode, wrong = r.read(data, int(lo))
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

// read returns the offset of the next row in bytes, the number of the line there, and a function
// that encodes the answer with the next row's offset in characters.
func (r rowRequest) read(
	data []byte, from int,
) (next int, nextLine int64, encode func(next int64) []byte, err error) {
	if r.op == 'w' {
		options, err := readOptions(r.text.CSV(), r.body)
		if err != nil {
			return 0, 0, nil, err
		}
		layout, err := tables.FindLayout(data, from, options)
		return layout.First, layout.Line, layout.Encode, err
	}

	line, body, err := cutNumbers([]byte(r.body), 1, true)
	if err != nil {
		return 0, 0, nil, err
	}
	var batch *tables.Batch
	switch r.op {
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

// readOptions adds the options that a guest gives to those of the text.
func readOptions(o tables.Options, body string) (tables.Options, error) {
	if body == "" {
		return o, nil
	}
	const most = 1000
	given := strings.SplitN(body, "\x00", most)
	if len(given)%2 != 0 {
		return o, errRequest
	}
	for ; len(given) > 0; given = given[2:] {
		if err := o.Set(given[0], given[1]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func csvRows(data []byte, from int, line int64, body []byte) (*tables.Batch, error) {
	bounds, body, err := cutNumbers(body, 2, true)
	if err != nil || len(body) == 0 {
		return nil, errRequest
	}
	dialect := tables.Dialect{Delimiter: body[0], Limit: int(bounds[1])}
	dialect, body, isValid := dialect.WithSpecial(body[1:])
	if !isValid || len(body) == 0 || body[0] != 'l' && body[0] != 'd' {
		return nil, errRequest
	}
	if err := dialect.Check(); err != nil {
		return nil, err
	}

	var names [][]byte
	if body[0] == 'd' {
		if bytes.Count(body, []byte{0}) >= tables.MaxFields {
			return nil, errRequest
		}
		names = bytes.Split(body[1:], []byte{0})
	}
	return tables.CSVRows(data, from, line, dialect, names, int(bounds[0])), nil
}
