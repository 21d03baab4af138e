package bigtext

import (
	"context"
	"errors"
)

// cut is the range [lo,hi) of bytes, divided into parts.
type cut struct {
	t      *Text
	s      Splitter
	sc     scanner
	x      *splitIndex
	lo, hi int64
	cutSums
}

// split returns the cut of the bytes [lo,hi).
func (t *Text) split(ctx context.Context, s Splitter, lo, hi int64) (*cut, error) {
	if s.kind == splitSep && s.sep == "" {
		return nil, errors.New("cannot split: empty separator: give at least one character")
	}
	end := s.lastEvent(lo, hi)
	x, err := t.splitIndexFor(ctx, s, lo, end)
	if err != nil {
		return nil, err
	}

	c := &cut{t: t, s: s, sc: s.scanner(ctx, t, t.random), x: x, lo: lo, hi: hi}
	key := splitKey{s, lo, hi}

	// The sums depend on where the index begins.
	if sums, ok := t.splits.getSums(key); ok && x.key.hi-x.key.lo > t.small() {
		c.cutSums = sums
		return c, nil
	}

	c.key = key
	c.before = x.rank(c.sc, lo)
	c.extra = b2i(lo < hi && c.startsInside())
	c.events = x.rank(c.sc, max(lo, end)) - c.before + c.extra
	c.parts = c.countParts()
	err = ctx.Err()
	if err == nil && x.key.hi-x.key.lo > t.small() {
		t.splits.putSums(c.cutSums)
	}

	return c, err
}

func (c *cut) startsInside() bool {
	d := c.t.random
	switch c.s.kind {
	case splitLines:
		return c.lo > 0 && d[c.lo] == '\n' && d[c.lo-1] == '\r'
	case splitFields:
		return spaceWidth(d, c.lo) == 0 && !fieldScanner(d).spaceBefore(c.lo)
	default:
		return false
	}
}

func (c *cut) countParts() int64 {
	switch c.s.kind {
	case splitSep:
		return c.events + 1
	case splitFields:
		return c.events
	default:
		rest := c.lo
		if c.events > 0 {
			rest = c.separator(c.events - 1).hi
		}
		return c.events + b2i(rest < c.hi)
	}
}

// event returns the position of event i of the range.
func (c *cut) event(i int64) int64 {
	if i < c.extra {
		return c.lo
	}
	return c.x.at(c.sc, c.before+i-c.extra)
}

// separator returns the bytes of separator i that are within the range.
func (c *cut) separator(i int64) span { return c.separatorAt(c.event(i)) }

func (c *cut) separatorAt(at int64) span {
	s := c.sc.separator(at)
	return span{max(s.lo, c.lo), min(s.hi, c.hi)}
}

// start returns the first byte of part i.
func (c *cut) start(i int64) int64 {
	switch {
	case i == c.parts:
		return c.hi
	case c.s.kind == splitFields:
		return c.event(i)
	case i == 0:
		return c.lo
	}
	return c.separator(i - 1).hi
}

// end returns the byte after part i, which starts at start.
func (c *cut) end(ctx context.Context, i, start int64) (int64, error) {
	if c.s.kind == splitFields {
		return c.t.fieldEnd(ctx, start, c.hi)
	}
	if i >= c.events {
		return c.hi, nil
	}

	// Most separators are near and found without the index.
	if i > 0 || c.extra == 0 {
		if at, _ := c.sc.next(start, min(c.s.lastEvent(start, c.hi), start+c.x.block)); at >= 0 {
			return c.separatorAt(at).lo, nil
		}
	}
	return c.separator(i).lo, nil
}

// Parts returns the number of parts of the characters [a,b) by s.
func (t *Text) Parts(ctx context.Context, s Splitter, a, b int64) (n int64, err error) {
	err = t.withCut(ctx, s, a, b, func(_ *index, c *cut) error { n = c.parts; return nil })
	return n, err
}

// PartsRange returns the offsets [start,end) of parts i to j-1 including the separators between
// them; for i == j, the range is empty. It returns an error unless 0 <= i <= j <= Parts.
func (t *Text) PartsRange(
	ctx context.Context, s Splitter, a, b, i, j int64,
) (start, end int64, err error) {
	err = t.withCut(ctx, s, a, b, func(x *index, c *cut) error {
		if i < 0 || i > j || j > c.parts {
			return rangeError("get parts", i, j, c.parts)
		}
		start, end, err = c.chars(ctx, x, i, j)
		return err
	})
	return start, end, err
}

// chars returns the offsets of the parts i to j-1.
func (c *cut) chars(ctx context.Context, x *index, i, j int64) (start, end int64, err error) {
	lo := c.start(i)
	hi, last := lo, lo
	if j > i {
		if j > i+1 {
			last = c.start(j - 1)
		}
		hi, err = c.end(ctx, j-1, last)
	}

	if err == nil {
		err = ctx.Err()
	}
	return x.charOf(c.t.random, lo), x.charOf(c.t.random, hi), err
}

// withCut calls f with the cut of the characters [a,b).
func (t *Text) withCut(
	ctx context.Context, s Splitter, a, b int64, f func(x *index, c *cut) error,
) error {
	return t.withIndex(ctx, func(x *index) error {
		lo, hi, err := x.bytesOf(t.random, "split", a, b)
		if err != nil {
			return err
		}

		c, err := t.split(ctx, s, lo, hi)
		if err != nil {
			return err
		}
		return f(x, c)
	})
}
