package bigtext

import (
	"bytes"
	"context"
	"unicode/utf8"
)

// searchStep is the number of bytes that are searched between two checks of the context.
const searchStep = 1 << 20

// search searches for one needle of at least one byte.
type search struct {
	t      *Text
	data   []byte // the bytes of t
	needle []byte
	look   *needle
	raw    bool // the needle contains invalid bytes, so each match needs a check
	nul    bool // the needle contains a NUL, so it may be in a hole
}

func newSearch(t *Text, text []byte) *search {
	return &search{
		t:      t,
		data:   t.data,
		needle: text,
		look:   newNeedle(text),
		raw:    !utf8.Valid(text),
		nul:    bytes.IndexByte(text, 0) >= 0,
	}
}

// starts returns the range of positions where a match inside [lo,hi) may start.
func (s *search) starts(lo, hi int64) span {
	return span{lo, max(lo, hi-int64(len(s.needle))+1)}
}

// matches reports whether the needle's bytes at p are the needle's characters. They are, unless a
// valid sequence extends across their beginning or end, which can only happen if the needle
// contains invalid bytes.
func (s *search) matches(p int64) bool {
	return !s.raw || boundary(s.data, p) && boundary(s.data, p+int64(len(s.needle)))
}

// window returns the end of the start positions to search from lo in one step, and the bytes to
// search. If lo is in a hole that cannot contain the needle, it returns the end of the hole and no
// bytes.
func (s *search) window(lo, hi int64) (end int64, w []byte) {
	n := int64(len(s.needle))
	end = min(hi, lo+max(searchStep, n))
	last := min(end+n-1, s.t.Size())
	if !s.nul {
		if q := s.t.skipHole(lo); q > lo {
			return min(q, hi), nil
		}
		hole := s.t.nextHole(lo)
		end, last = min(end, hole), min(last, hole)
	}
	return end, s.data[lo:last]
}

// next returns the first match that starts in [lo,hi), or -1.
func (s *search) next(ctx context.Context, lo, hi int64) (int64, error) {
	for lo < hi {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		end, w := s.window(lo, hi)
		i, err := s.look.index(ctx, w)
		switch p := lo + int64(i); {
		case err != nil:
			return -1, err
		case i < 0:
			lo = end
		case s.matches(p):
			return p, nil
		default:
			lo = p + 1
		}
	}
	return -1, nil
}

// last returns the last match that starts in [lo,hi), or -1. It first searches for the first match,
// which is much faster.
func (s *search) last(ctx context.Context, lo, hi int64) (int64, error) {
	n := int64(len(s.needle))
	for lo < hi {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		from := max(lo, hi-max(searchStep/16, n))
		if !s.nul && s.t.inHole(from, hi) {
			hi = from
			continue
		}

		w := s.data[from:min(hi+n-1, s.t.Size())]
		i, err := s.look.index(ctx, w)
		if i >= 0 {
			i, err = s.look.lastIndex(ctx, w)
		}

		switch p := from + int64(i); {
		case err != nil:
			return -1, err
		case i < 0:
			hi = from
		case s.matches(p):
			return p, nil
		default:
			hi = p
		}
	}

	return -1, nil
}

// countFrom counts the non-overlapping matches that start in [lo,hi), from the left.
func (s *search) countFrom(ctx context.Context, lo, hi int64) (count int64, err error) {
	for {
		p, err := s.next(ctx, lo, hi)
		if err != nil || p < 0 {
			return count, err
		}
		count++
		lo = p + int64(len(s.needle))
	}
}

// countAll counts the matches that start in [lo,hi), for a needle that cannot overlap itself.
func (s *search) countAll(ctx context.Context, lo, hi int64) (int64, error) {
	if s.raw {
		return s.countFrom(ctx, lo, hi)
	}
	count := int64(0)
	for lo < hi {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		end, w := s.window(lo, hi)
		n, err := s.look.count(ctx, w)
		if err != nil {
			return 0, err
		}
		count += int64(n)
		lo = end
	}
	return count, nil
}

// overlaps reports whether two matches may overlap: whether a proper prefix of the needle is its
// suffix (the border of Knuth, Morris and Pratt, "Fast pattern matching in strings", 1977). For a
// needle above 1 MiB it returns true.
func (s *search) overlaps() bool {
	n := len(s.needle)
	if n == 0 || n > 1<<20 {
		return n > 0
	}

	border := make([]int32, n)
	for i, k := 1, int32(0); i < n; i++ {
		for k > 0 && s.needle[i] != s.needle[k] {
			k = border[k-1]
		}
		if s.needle[i] == s.needle[k] {
			k++
		}
		border[i] = k
	}
	return border[n-1] > 0
}
