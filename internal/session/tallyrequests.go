package session

import (
	"bytes"
	"cmp"
	"context"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/internal/tables"
)

// tallyStep is how many bytes of a text one answer counts at most, and tallyCheck how many parts
// it counts between two looks at the clock.
const (
	tallyStep  = 64 << 20
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
	data, err := t.Raw(lo, hi)
	if err != nil {
		return fail(err)
	}

	counts, rest := tables.NewTally(), int64(-1)
	err = bigtext.Guard(t, func() {
		parts := 0
		by.EachPart(data, func(part []byte, next int64) bool {
			counts.Add(part)
			rest = next
			parts++
			return next < tallyStep && !counts.IsFull() && (parts%tallyCheck > 0 || ctx.Err() == nil)
		})
	})
	if err = cmp.Or(err, context.Cause(ctx)); err != nil {
		return fail(err)
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
