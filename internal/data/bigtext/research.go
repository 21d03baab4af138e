package bigtext

import (
	"context"
	"fmt"
)

func (t *Text) withRegion(ctx context.Context, a, b int64, f func(*index, *region) error) error {
	return t.withIndex(ctx, func(x *index) error {
		lo, hi, err := x.bytesOf(t.random, "match in", a, b)
		if err != nil {
			return err
		}

		r := &region{data: t.data, lo: lo, hi: hi, valid: x.invalid == 0}
		if len(t.findHoles()) > 0 {
			r.skipHole = t.skipHole
		}
		return f(x, r)
	})
}

// FindRegexp returns the first non-overlapping matches of re in the characters [a,b), starting at
// offset from, a <= from <= b. It ignores everything outside [a,b): \A matches at a and \z at b.
// Each span contains the start and end of the match and then of each group, as offsets; a group
// that took no part in the match has -1 and -1.
//
// Matches follow one another as in Python's finditer. FindRegexp returns at most limit of them, or
// limit+1: an empty match is never the last one if a non-empty match starts there, too. next is the
// value of from that finds the following matches, or -1 if there are none. Invalid offsets are an
// error.
func (t *Text) FindRegexp(
	ctx context.Context, re *Regexp, a, b, from int64, limit int,
) (spans [][]int64, next int64, err error) {
	next = -1
	err = t.withRegion(ctx, a, b, func(x *index, r *region) error {
		if from < a || from > b || limit < 1 {
			return fmt.Errorf(
				"cannot search from offset %d for at most %d matches: %w: "+
					"give an offset from %d to %d and a limit of 1 or more",
				from, limit, errRange, a, b)
		}

		c := collector{x: x, data: t.random, limit: limit, next: -1}
		m := re.borrow(r.valid)
		defer re.giveBack(m)

		if err := m.each(ctx, r, x.byteOf(t.random, from), r.hi, c.add); err != nil {
			return err
		}
		spans = c.spans
		if c.next >= 0 {
			next = c.char(c.next)
		}
		return nil
	})

	return spans, next, err
}

// collector collects matches as offsets.
type collector struct {
	x     *index
	data  []byte
	limit int
	spans [][]int64
	empty int64 // position of the empty match that is the last span, if full
	full  bool
	next  int64 // position; -1: no more matches

	atByte, atChar int64 // the last position and its offset
}

// add adds the match loc; it returns false when no more matches are needed.
func (c *collector) add(loc []int64) bool {
	if c.full && loc[0] > c.empty {
		c.next = loc[0] // the search continues as if it began there
		return false
	}

	span := make([]int64, len(loc))
	for i, p := range loc {
		span[i] = -1
		if p >= 0 {
			span[i] = c.char(p)
		}
	}

	c.spans = append(c.spans, span)
	if len(c.spans) < c.limit {
		return true
	}

	c.full, c.empty = true, loc[0]
	if loc[0] == loc[1] {
		return true // the next match decides
	}

	c.next = loc[1]
	return false
}

// char returns the offset of position p, counting from the last position if that is near.
func (c *collector) char(p int64) int64 {
	switch d := p - c.atByte; {
	case c.x.cum == nil:
		return p
	case d >= 0 && d < c.x.block/2 && c.x.invalid == 0:
		c.atChar += leads(c.data[c.atByte:p])
	case d >= 0 && d < c.x.block/2: // both positions are boundaries
		n, _, _ := countDecoded(c.data[c.atByte:p])
		c.atChar += n
	default:
		c.atChar = c.x.charOf(c.data, p)
	}

	c.atByte = p
	return c.atChar
}
