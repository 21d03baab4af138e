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

// tallyStep bounds the bytes of text counted for one answer, and tallyPart the length of a part.
// tallyCheck is the number of parts counted between two checks of the context.
const (
	tallyStep  = 64 << 20
	tallyPart  = 64 << 20
	tallyCheck = 1 << 14
)

// tally counts equal parts of the text from a to b, stopping early when enough different parts are
// found. The operands are the kind of the parts and their separator. The answer is a list in the
// format of marshal: the offset of the next part, or -1, and a dict of the parts with their counts.
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

// countParts counts the parts at the start of data, and returns the offset of the next part, or -1.
// If data is cut, its last part may be incomplete, so it is not counted.
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
