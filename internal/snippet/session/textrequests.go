package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// Bounds of one request.
const (
	maxSlice   = 256 << 20 // bytes
	maxMatches = 4096
)

// text handles the requests that begin with t.
func (a *Accounts) text(body []byte) Reply {
	if len(body) == 0 {
		return fail(errRequest)
	}
	op, body := body[0], body[1:]
	switch op {
	case 'i':
		return a.describeText(body)
	case 'd':
		return a.listSections(body)
	case 'm':
		return a.mapText(body)
	case 'o':
		return a.openRows(body)
	}
	more := op != 's' && op != 'b' && op != 'q'
	nums, rest, err := cutNumbers(body, 3, more)
	if err != nil {
		return fail(err)
	}
	if nums[0] < 0 || nums[0] > math.MaxInt32 {
		return fail(errRequest)
	}
	t, _, err := a.openText(int(nums[0]))
	if err != nil {
		return fail(err)
	}
	from, to := nums[1], nums[2]
	switch op {
	case 's':
		return a.slice(t, from, to)
	case 'b':
		return a.bytes(t, from, to)
	}
	// A long scan ends when the snippet's time is over.
	ctx, cancel := context.WithTimeout(a.calls.ctx, max(0, a.meter.activeLeft())+time.Millisecond)
	defer cancel()
	switch op {
	case 'f':
		return number(t.Find(ctx, rest, from, to))
	case 'r':
		return number(t.RFind(ctx, rest, from, to))
	case 'c':
		return number(t.Count(ctx, rest, from, to))
	case 'p', 'l':
		return parts(ctx, t, op, from, to, rest)
	case 'x', 'g':
		return matches(ctx, t, op, from, to, rest)
	case 'q':
		return drawPage(ctx, t, from, to)
	case 'u':
		return tally(ctx, t, from, to, rest)
	case 'n', 'j', 'v', 'w':
		return a.rows(ctx, rowRequest{t, op, from, to, string(rest)})
	}
	return fail(errRequest)
}

func number(n int64, err error) Reply {
	if err != nil {
		return fail(err)
	}
	return okInt(n)
}

func (a *Accounts) slice(t *bigtext.Text, from, to int64) Reply {
	data, ascii, err := t.Slice(a.calls.ctx, from, to)
	if err != nil {
		return fail(err)
	}
	if len(data) > maxSlice {
		return fail(
			fmt.Errorf(
				"cannot copy %d bytes into the sandbox at once: use smaller slices", len(data),
			),
		)
	}
	return Reply{Data: data, ASCII: ascii, text: t}
}

// bytes copies raw bytes, because a byte offset may be inside a character.
func (a *Accounts) bytes(t *bigtext.Text, from, to int64) Reply {
	t = t.Original()
	if from < 0 || from > to || to > t.Size() || to-from > maxSlice {
		return fail(errRequest)
	}
	data, err := t.Raw(from, to)
	if err != nil {
		return fail(err)
	}
	return Reply{Data: data, text: t}
}

// listSections lists the sections of a document: [[title, start in characters], ...].
func (a *Accounts) listSections(body []byte) Reply {
	id, err := strconv.Atoi(string(body))
	if err != nil || id < 0 {
		return fail(errRequest)
	}
	t, _, err := a.openText(id)
	if err != nil {
		return fail(err)
	}

	all := make([][2]any, 0, len(t.Sections()))
	for _, section := range t.Sections() {
		start, err := t.CharOffset(a.calls.ctx, section.Start)
		if err != nil {
			return fail(err)
		}
		all = append(all, [2]any{section.Title, start})
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fail(err)
	}
	return Reply{Data: data, text: t}
}

// drawPage draws a page of a document. The reply is a line that lists the parts missing from the
// picture, followed by a PNG.
func drawPage(ctx context.Context, t *bigtext.Text, page, dpi int64) Reply {
	if page < 0 || page > math.MaxInt32 || dpi < 0 || dpi > math.MaxInt32 {
		return fail(errRequest)
	}
	data, err := t.DrawPage(ctx, int(page), int(dpi))
	if err != nil {
		return fail(err)
	}
	return Reply{Data: data}
}

// splitter parses the kind and returns the remaining operands.
func splitter(body []byte) (string, []byte, error) {
	kind, rest, found := strings.Cut(string(body), ",")
	if !found {
		return "", nil, errRequest
	}
	return kind, []byte(rest), nil
}

func parts(ctx context.Context, t *bigtext.Text, op byte, a, b int64, body []byte) Reply {
	kind, rest, err := splitter(body)
	if err != nil {
		return fail(err)
	}
	var span []int64
	if op == 'l' {
		if span, rest, err = cutNumbers(rest, 2, true); err != nil {
			return fail(err)
		}
	}
	by, err := splitterOf(kind, rest)
	if err != nil {
		return fail(err)
	}
	if op == 'p' {
		return number(t.Parts(ctx, by, a, b))
	}
	start, end, err := t.PartsRange(ctx, by, a, b, span[0], span[1])
	if err != nil {
		return fail(err)
	}
	return ok(fmt.Sprintf("%d,%d", start, end))
}

func splitterOf(kind string, sep []byte) (bigtext.Splitter, error) {
	switch kind {
	case "sep":
		if len(sep) == 0 {
			return bigtext.Splitter{}, errors.New("empty separator")
		}
		return bigtext.Sep(append([]byte(nil), sep...)), nil
	case "lines":
		return bigtext.Lines(), nil
	case "newlines":
		return bigtext.Newlines(), nil
	case "fields":
		return bigtext.Fields(), nil
	}
	return bigtext.Splitter{}, errRequest
}

func matches(ctx context.Context, t *bigtext.Text, op byte, a, b int64, body []byte) Reply {
	nums, expr, err := cutNumbers(body, 2, true)
	if err != nil || nums[1] < 1 || nums[1] > maxMatches {
		return fail(errRequest)
	}
	re, err := bigtext.CompileRegexp(ctx, string(expr))
	if err != nil {
		return fail(fmt.Errorf("regexp: %w", err))
	}
	var (
		spans [][]int64
		next  int64
	)
	if op == 'x' {
		spans, next, err = t.FindRegexp(ctx, re, a, b, nums[0], int(nums[1]))
	} else {
		spans, next, err = matchLines(ctx, t, re, a, b, nums[0], int(nums[1]))
	}
	if err != nil {
		return fail(err)
	}
	if spans == nil {
		spans = [][]int64{}
	}
	data, err := json.Marshal([]any{next, spans})
	if err != nil {
		return fail(err)
	}
	return Reply{Data: data, ASCII: true}
}

// matchLines finds the lines, including their ends, in which re matches; adjacent lines form one
// run of at most about 64 KiB.
func matchLines(
	ctx context.Context, t *bigtext.Text, re *bigtext.Regexp, a, b, from int64, limit int,
) (runs [][]int64, next int64, err error) {
	const longest = 1 << 16
	next = from
	newline := []byte{'\n'}
	for next >= 0 && len(runs) < limit {
		found, _, err := t.FindRegexp(ctx, re, a, b, next, 1)
		if err != nil {
			return nil, 0, err
		}
		if len(found) == 0 {
			return runs, -1, nil
		}
		at := found[0][0]
		start, err := t.RFind(ctx, newline, max(a, from), at)
		if err != nil {
			return nil, 0, err
		}
		start = max(start+1, a, from)
		end, err := t.Find(ctx, newline, at, b)
		if err != nil {
			return nil, 0, err
		}
		if end < 0 {
			end = b
		} else {
			end++
		}
		last := len(runs) - 1
		if last >= 0 && runs[last][1] == start && end-runs[last][0] < longest {
			runs[last][1] = end
		} else {
			runs = append(runs, []int64{start, end})
		}
		next = end
		if end >= b {
			next = -1
		}
	}
	return runs, next, nil
}
