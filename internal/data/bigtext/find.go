package bigtext

import (
	"context"
	"math"
	"sync/atomic"
)

// nearSize is the number of bytes that Find and RFind search before they start workers.
const nearSize = 256 << 10

// Find returns the offset of the first occurrence of needle in [a,b), like str.find, or -1. A
// needle that is not valid UTF-8 represents the characters that surrogateescape decodes it to.
func (t *Text) Find(ctx context.Context, needle []byte, a, b int64) (at int64, err error) {
	return t.search(ctx, "find in", needle, a, b, a, t.findFirst)
}

// RFind returns the offset of the last occurrence of needle in [a,b), like str.rfind, or -1.
func (t *Text) RFind(ctx context.Context, needle []byte, a, b int64) (at int64, err error) {
	return t.search(ctx, "rfind in", needle, a, b, b, t.findLast)
}

func (t *Text) search(ctx context.Context, verb string, needle []byte, a, b, empty int64,
	find func(context.Context, *search, span) (int64, error),
) (at int64, err error) {
	at = -1
	err = t.withIndex(ctx, func(x *index) error {
		lo, hi, err := x.bytesOf(t.random, verb, a, b)
		if err != nil {
			return err
		}
		if len(needle) == 0 {
			at = empty
			return nil
		}

		s := newSearch(t, needle)
		p, err := find(ctx, s, s.starts(lo, hi))
		if err == nil && p >= 0 {
			at = x.charOf(t.random, p)
		}
		return err
	})

	return at, err
}

func (t *Text) findFirst(ctx context.Context, s *search, r span) (int64, error) {
	near := min(r.hi, r.lo+min(nearSize, t.chunk))
	if p, err := s.next(ctx, r.lo, near); p >= 0 || err != nil {
		return p, err
	}

	var best atomic.Int64
	best.Store(math.MaxInt64)
	err := t.eachOf(ctx, t.chunks(near, r.hi), func(i int64) error {
		lo, hi := t.chunkAt(near, r.hi, i)
		if lo > best.Load() {
			return nil
		}

		p, err := s.next(ctx, lo, hi)
		if p >= 0 {
			keep(&best, p, func(p, q int64) bool { return p < q })
		}
		return err
	})
	if p := best.Load(); p < math.MaxInt64 {
		return p, err
	}

	return -1, err
}

func (t *Text) findLast(ctx context.Context, s *search, r span) (int64, error) {
	near := max(r.lo, r.hi-min(nearSize, t.chunk))
	if p, err := s.last(ctx, near, r.hi); p >= 0 || err != nil {
		return p, err
	}

	var best atomic.Int64
	best.Store(-1)
	n := t.chunks(r.lo, near)
	err := t.eachOf(ctx, n, func(i int64) error {
		lo, hi := t.chunkAt(r.lo, near, n-1-i)
		if hi <= best.Load() {
			return nil
		}

		p, err := s.last(ctx, lo, hi)
		if p >= 0 {
			keep(&best, p, func(p, q int64) bool { return p > q })
		}
		return err
	})

	return best.Load(), err
}

// keep stores p if it is better than the stored value.
func keep(best *atomic.Int64, p int64, better func(p, q int64) bool) {
	for {
		q := best.Load()
		if !better(p, q) || best.CompareAndSwap(q, p) {
			return
		}
	}
}

// Count returns the number of occurrences of needle in [a,b) without overlap, from the left, like
// str.count: the empty needle occurs b-a+1 times.
func (t *Text) Count(ctx context.Context, needle []byte, a, b int64) (n int64, err error) {
	err = t.withIndex(ctx, func(x *index) error {
		lo, hi, err := x.bytesOf(t.random, "count in", a, b)
		if err != nil {
			return err
		}
		if len(needle) == 0 {
			n = b - a + 1
			return nil
		}

		s := newSearch(t, needle)
		n, err = t.count(ctx, s, s.starts(lo, hi))
		return err
	})
	return n, err
}

func (t *Text) count(ctx context.Context, s *search, r span) (int64, error) {
	if s.overlaps() {
		return s.countFrom(ctx, r.lo, r.hi)
	}
	var total atomic.Int64
	err := t.each(ctx, r.lo, r.hi, func(_, lo, hi int64) error {
		n, err := s.countAll(ctx, lo, hi)
		total.Add(n)
		return err
	})
	return total.Load(), err
}
