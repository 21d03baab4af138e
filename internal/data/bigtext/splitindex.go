package bigtext

import (
	"bytes"
	"context"
	"sort"
	"strings"
	"sync"
)

const (
	maxSplitIndexes = 8
	// smallRange is the size in bytes up to which a range is split again for each question, rather
	// than by building an index of the whole text.
	smallRange = 64 << 10
)

// splitIndex counts the events that start in the bytes [lo,hi) before each block.
type splitIndex struct {
	key   splitKey
	block int64
	cum   []int64 // events before block lo/block + i; one more entry at the end
	// from contains the start of each block's scan, after a separator that extends into the block.
	// It is nil unless the separator may overlap itself.
	from []int64
}

// splitKey identifies a split index. An index covers the whole text, except for a separator
// that may overlap itself: then the start of the range matters.
type splitKey struct {
	s      Splitter
	lo, hi int64
}

// splitCache keeps the most recently used split indexes, the latest first.
type splitCache struct {
	mu   sync.Mutex
	all  []*splitIndex
	sums []cutSums // the ranges that were split last
}

// cutSums is the information about a split range that does not depend on the requested part.
type cutSums struct {
	key    splitKey
	before int64 // events of the index before the range
	events int64 // events in the range
	// extra is 1 if the range starts with an event that is not an event of the whole text: the \n
	// of a \r\n, or the rest of a field.
	extra int64
	parts int64
}

func (c *splitCache) getSums(k splitKey) (cutSums, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sums {
		if s.key == k {
			return s, true
		}
	}
	return cutSums{}, false
}

func (c *splitCache) putSums(s cutSums) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sums = append([]cutSums{s}, c.sums[:min(len(c.sums), maxSplitIndexes-1)]...)
}

func (c *splitCache) get(k splitKey) *splitIndex {
	c.mu.Lock()
	defer c.mu.Unlock()

	for i, x := range c.all {
		if x.key == k {
			copy(c.all[1:i+1], c.all[:i])
			c.all[0] = x
			return x
		}
	}
	return nil
}

func (c *splitCache) put(x *splitIndex) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append([]*splitIndex{x}, c.all[:min(len(c.all), maxSplitIndexes-1)]...)
}

// splitIndexFor returns an index for the events in [lo,hi).
func (t *Text) splitIndexFor(ctx context.Context, s Splitter, lo, hi int64) (*splitIndex, error) {
	whole := splitKey{s, 0, s.lastEvent(0, t.Size())}
	small := hi-lo <= t.small()
	if s.greedy {
		whole = splitKey{s, lo, hi}
	}
	if x := t.splits.get(whole); x != nil {
		return x, nil
	}
	if small {
		return t.buildSplit(ctx, splitKey{s, lo, hi})
	}
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()

	if x := t.splits.get(whole); x != nil {
		return x, nil
	}
	x, err := t.buildSplit(ctx, whole)
	if err == nil {
		t.splits.put(x)
	}

	return x, err
}

// lastEvent returns the end of the positions in [lo,hi) where an event may be.
func (s Splitter) lastEvent(lo, hi int64) int64 {
	if s.kind == splitSep {
		return max(lo, hi-int64(len(s.sep))+1)
	}
	return hi
}

func (t *Text) buildSplit(ctx context.Context, k splitKey) (*splitIndex, error) {
	x := &splitIndex{key: k, block: t.splitBlock}
	n := x.blocks()
	x.cum = make([]int64, n+1)
	count := t.countEvents
	if k.s.greedy {
		x.from = make([]int64, n)
		count = t.countGreedy
	}

	if err := count(ctx, x); err != nil {
		return nil, err
	}
	sum := int64(0)
	for i, c := range x.cum {
		x.cum[i] = sum
		sum += c
	}

	return x, nil
}

// blocks returns the number of blocks in the bytes of x.
func (x *splitIndex) blocks() int64 {
	if x.key.lo >= x.key.hi {
		return 0
	}
	return (x.key.hi-1)/x.block - x.key.lo/x.block + 1
}

// blockAt returns the byte range of block i in which to look for events.
func (x *splitIndex) blockAt(i int64) (lo, hi int64) {
	start := (x.key.lo/x.block + i) * x.block
	lo, hi = max(start, x.key.lo), min(start+x.block, x.key.hi)
	if x.from != nil {
		lo = x.from[i]
	}
	return lo, hi
}

// countEvents sets cum to the number of events of each block, in parallel.
func (t *Text) countEvents(ctx context.Context, x *splitIndex) error {
	first := x.key.lo / x.block
	holes := x.key.s.kind != splitSep || strings.IndexByte(x.key.s.sep, 0) < 0
	return t.each(ctx, x.key.lo, x.key.hi, func(_, lo, hi int64) error {
		sc := x.key.s.scanner(ctx, t, t.data)
		for i := lo/x.block - first; i <= (hi-1)/x.block-first; i++ {
			from, to := x.blockAt(i)
			// The preceding byte matters: a hole after whitespace starts a field.
			if holes && from > 0 && t.inHole(from-1, to) {
				continue
			}
			x.cum[i] = countEvents(sc, from, to)
		}
		return ctx.Err()
	})
}

// countEvents returns the number of events in [lo,hi).
func countEvents(sc scanner, lo, hi int64) (n int64) {
	if lo >= hi {
		return 0
	}

	switch sc := sc.(type) { // much faster than one by one
	case fieldScanner:
		return sc.count(lo, hi)
	case newlineScanner:
		return int64(bytes.Count(sc[lo:hi], []byte{'\n'}))
	}

	for at, p := sc.next(lo, hi); at >= 0; at, p = sc.next(p, hi) {
		n++
	}
	return n
}

// countGreedy is like countEvents, for a separator that may overlap itself: it finds one separator
// after the other, from the left.
func (t *Text) countGreedy(ctx context.Context, x *splitIndex) error {
	s := newSearch(t, []byte(x.key.s.sep))
	for i := range x.from {
		start := (x.key.lo/x.block + int64(i)) * x.block
		x.from[i] = max(start, x.key.lo)
	}

	for p := x.key.lo; ; {
		at, err := s.next(ctx, p, x.key.hi)
		if err != nil || at < 0 {
			return err
		}

		p = at + int64(len(s.needle))
		first := x.key.lo / x.block
		x.cum[at/x.block-first]++
		for i := at/x.block - first + 1; i < int64(len(x.from)) && x.from[i] < p; i++ {
			x.from[i] = p
		}
	}
}

// rank returns the number of events before p; key.lo <= p must hold.
func (x *splitIndex) rank(sc scanner, p int64) int64 {
	i := int64(len(x.cum)) - 1
	if p >= x.key.hi || i == 0 {
		return x.cum[i]
	}
	i = p/x.block - x.key.lo/x.block
	lo, _ := x.blockAt(i)
	return x.cum[i] + countEvents(sc, lo, p)
}

// at returns the position of event k, which must exist.
func (x *splitIndex) at(sc scanner, k int64) int64 {
	i := int64(sort.Search(len(x.cum), func(i int) bool { return x.cum[i] > k })) - 1
	lo, hi := x.blockAt(i)
	at, p := sc.next(lo, hi)
	for n := k - x.cum[i]; n > 0 && at >= 0; n-- {
		at, p = sc.next(p, hi)
	}
	return at
}

// small returns smallRange, or less if a test uses small chunks.
func (t *Text) small() int64 { return min(smallRange, t.chunk) }
