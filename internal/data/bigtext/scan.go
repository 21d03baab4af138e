package bigtext

import (
	"context"
	"runtime"
	"sort"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// chunks returns the number of chunks in the bytes [lo,hi). Chunks start at multiples of t.chunk,
// so that they consist of whole blocks.
func (t *Text) chunks(lo, hi int64) int64 {
	if lo >= hi {
		return 0
	}
	return (hi-1)/t.chunk - lo/t.chunk + 1
}

// chunkAt returns the part of [lo,hi) that is in the i-th of its chunks.
func (t *Text) chunkAt(lo, hi, i int64) (int64, int64) {
	start := (lo/t.chunk + i) * t.chunk
	return max(lo, start), min(hi, start+t.chunk)
}

// each calls f for each chunk of the bytes [lo,hi), in several goroutines if there are several
// chunks. The calls start in order, but may end in any order. A fault is an error; the first error
// or the end of ctx ends the scan.
func (t *Text) each(ctx context.Context, lo, hi int64, f func(i, lo, hi int64) error) error {
	return t.eachOf(ctx, t.chunks(lo, hi), func(i int64) error {
		lo, hi := t.chunkAt(lo, hi, i)
		return f(i, lo, hi)
	})
}

// eachOf calls f for 0 to n-1 like each.
func (t *Text) eachOf(ctx context.Context, n int64, f func(i int64) error) error {
	if n <= 1 {
		return t.protect(func() error { return some(ctx, n, f) })
	}
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(int64(runtime.GOMAXPROCS(0)), n) {
		g.Go(func() error {
			return t.protect(func() error {
				for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
					if err := ctx.Err(); err != nil {
						return err
					}
					if err := f(i); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}

	return g.Wait()
}

func some(ctx context.Context, n int64, f func(i int64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	return f(0)
}

// findHoles queries the file's holes, once.
func (t *Text) findHoles() []span {
	t.holesDo.Do(func() {
		if t.file != nil {
			t.holes = fileHoles(t.file, t.Size())
		}
	})
	return t.holes
}

// inHole reports whether all bytes [lo,hi) are in one hole: NUL, and costly to
// read.
func (t *Text) inHole(lo, hi int64) bool { return lo < hi && t.skipHole(lo) >= hi }

// skipHole returns the end of the hole that contains byte p, or p.
func (t *Text) skipHole(p int64) int64 {
	holes := t.findHoles()
	i := sort.Search(len(holes), func(i int) bool { return holes[i].hi > p })
	if i < len(holes) && holes[i].lo <= p {
		return holes[i].hi
	}
	return p
}

// nextHole returns the beginning of the first hole that ends after p, but at least p; without such
// a hole, it returns the end of the text.
func (t *Text) nextHole(p int64) int64 {
	holes := t.findHoles()
	i := sort.Search(len(holes), func(i int) bool { return holes[i].hi > p })
	if i == len(holes) {
		return t.Size()
	}
	return max(p, holes[i].lo)
}
