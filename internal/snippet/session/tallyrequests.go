package session

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tables"
)

// tallyStep is how many bytes of a text one answer counts at most, tallyPart how long a part may be,
// and tallyCheck how many parts it counts between two looks at the clock.
const (
	tallyStep  = 64 << 20
	tallyPart  = 64 << 20
	tallyCheck = 1 << 14
)

// tally counts equal parts of the text from a on, until b or until enough differ. The operands
// are the kind of the parts and their separator. The answer is a list, as marshal writes it: the
// offset of the part that comes next, -1 for none, and a dict of the parts with their counts.
func tally(ctx context.Context, t *bigtext.Text, a, b int64, body []byte) Reply {
	kind, sep, found := bytes.Cut(body, comma)
	if !found || !utf8.Valid(sep) {
		return fail(errRequest)
	}
	by, err := splitterOf(string(kind), sep)
	if err != nil {
		return fail(err)
	}
	lo, hi, err := t.ByteRange(ctx, a, b)
	if err != nil {
		return fail(err)
	}
	end := min(hi, lo+tallyStep+tallyPart)
	data, err := t.Raw(lo, end)
	if err != nil {
		return fail(err)
	}

	counts, rest := tables.NewTally(), int64(-1)
	err = bigtext.Guard(t, func() { rest = countParts(ctx, counts, by, data, end < hi) })
	if err = cmp.Or(err, context.Cause(ctx)); err != nil {
		return fail(err)
	}
	if rest == 0 {
		return fail(fmt.Errorf("a part of the text has more than %d bytes, which is too long to count it: "+
			"use a loop over the parts", tallyPart))
	}
	if rest >= 0 {
		if rest, err = t.CharOffset(ctx, lo+rest); err != nil {
			return fail(err)
		}
	}

	var answer Reply
	err = bigtext.Guard(t, func() { answer.Data = counts.Encode(rest) })
	if err != nil {
		return fail(err)
	}
	return answer
}

// countParts counts the parts with which data begins, and returns where the next one begins, -1
// if there is none. The last part of data that is cut may go on, so it is not counted.
func countParts(
	ctx context.Context, counts *tables.Tally, by bigtext.Splitter, data []byte, isCut bool,
) (rest int64) {
	if !isCut {
		rest = -1
	}

	parts := 0
	by.EachPart(ctx, data, func(part []byte, next int64) bool {
		if next < 0 && isCut {
			return false
		}
		counts.Add(part)
		rest = next
		parts++
		return next < tallyStep && !counts.IsFull() && (parts%tallyCheck > 0 || ctx.Err() == nil)
	})
	return rest
}
