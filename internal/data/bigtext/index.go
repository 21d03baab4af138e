package bigtext

import (
	"context"
	"sort"
)

// index counts the characters before each block of block bytes.
type index struct {
	size, block int64
	chars       int64
	invalid     int64   // bytes outside any valid sequence
	first       int64   // position of the first invalid byte, or -1
	cum         []int64 // characters that start before block i; nil when ASCII
}

func (x *index) ascii() bool { return x.chars == x.size && x.invalid == 0 }

// chunkCount is the result of a worker for one chunk.
type chunkCount struct {
	chars, invalid, first int64
	blocks                []int32 // characters in each block; nil: as many as bytes
}

// indexed returns the index, which the first call builds.
func (t *Text) indexed(ctx context.Context) (*index, error) {
	if x := t.index.Load(); x != nil {
		return x, nil
	}
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()

	if x := t.index.Load(); x != nil {
		return x, nil
	}
	x, err := t.buildIndex(ctx)
	if err == nil {
		t.index.Store(x)
	}
	return x, err
}

func (t *Text) buildIndex(ctx context.Context) (*index, error) {
	size := t.Size()
	counts := make([]chunkCount, t.chunks(0, size))
	err := t.each(ctx, 0, size, func(i, lo, hi int64) error {
		counts[i] = t.countChunk(lo, hi)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t.sumIndex(counts), nil
}

func (t *Text) countChunk(lo, hi int64) chunkCount {
	// The byte before a hole may be the first of a sequence, but the NUL of the hole ends it.
	if t.inHole(lo, hi) || isASCII(t.data[lo:hi]) {
		return chunkCount{chars: hi - lo, first: -1}
	}
	c := chunkCount{first: -1, blocks: make([]int32, 0, (hi-lo)/t.block+1)}
	for ; lo < hi; lo += t.block {
		to := min(lo+t.block, hi)
		n, invalid, first := to-lo, int64(0), int64(-1)
		if !t.inHole(lo, to) {
			n, invalid, first = countChars(t.data, lo, to)
		}
		c.chars += n
		c.invalid += invalid
		if c.first < 0 {
			c.first = first
		}
		c.blocks = append(c.blocks, int32(n))
	}

	return c
}

func (t *Text) sumIndex(counts []chunkCount) *index {
	x := &index{size: t.Size(), block: t.block, first: -1}
	for _, c := range counts {
		x.chars += c.chars
		x.invalid += c.invalid
		if x.first < 0 {
			x.first = c.first
		}
	}

	if x.ascii() {
		return x
	}
	x.cum = make([]int64, 0, x.size/t.block+2)
	sum := int64(0)
	for i, c := range counts {
		lo, hi := t.chunkAt(0, x.size, int64(i))
		for k := int64(0); lo+k*t.block < hi; k++ {
			x.cum = append(x.cum, sum)
			if c.blocks != nil {
				sum += int64(c.blocks[k])
			} else {
				sum += min(t.block, hi-lo-k*t.block)
			}
		}
	}

	return x
}

// byteOf returns the position of character c, 0 <= c <= chars.
func (x *index) byteOf(data []byte, c int64) int64 {
	if x.cum == nil {
		return c
	}
	if c == x.chars {
		return x.size
	}

	i := int64(sort.Search(len(x.cum), func(i int) bool { return x.cum[i] > c })) - 1
	p := nextBoundary(data, i*x.block)
	if x.invalid == 0 && i+1 < int64(len(x.cum)) && x.cum[i+1]-x.cum[i] == x.block {
		return p + c - x.cum[i] // all ASCII
	}
	return skipChars(data, p, c-x.cum[i], x.invalid == 0)
}

// charOf returns the number of characters that start before position p.
func (x *index) charOf(data []byte, p int64) int64 {
	if x.cum == nil {
		return p
	}
	if p >= x.size {
		return x.chars
	}

	i := p / x.block
	if x.invalid == 0 {
		return x.cum[i] + leads(data[i*x.block:p])
	}

	n, _, _ := countChars(data, i*x.block, p)
	return x.cum[i] + n
}

// bytesOf returns the byte range of the characters [a,b); verb is used in the error.
func (x *index) bytesOf(data []byte, verb string, a, b int64) (lo, hi int64, err error) {
	if a < 0 || a > b || b > x.chars {
		return 0, 0, rangeError(verb, a, b, x.chars)
	}
	return x.byteOf(data, a), x.byteOf(data, b), nil
}

// Len returns the number of characters.
func (t *Text) Len(ctx context.Context) (n int64, err error) {
	err = t.withIndex(ctx, func(x *index) error { n = x.chars; return nil })
	return n, err
}

// ASCII reports whether every character is ASCII.
func (t *Text) ASCII(ctx context.Context) (ok bool, err error) {
	err = t.withIndex(ctx, func(x *index) error { ok = x.ascii(); return nil })
	return ok, err
}

// Invalid returns the number of bytes outside any valid UTF-8 sequence.
func (t *Text) Invalid(ctx context.Context) (n int64, err error) {
	err = t.withIndex(ctx, func(x *index) error { n = x.invalid; return nil })
	return n, err
}

// FirstInvalid returns the position of the first byte outside any valid UTF-8 sequence, or -1.
func (t *Text) FirstInvalid(ctx context.Context) (byteOff int64, err error) {
	byteOff = -1
	err = t.withIndex(ctx, func(x *index) error { byteOff = x.first; return nil })
	return byteOff, err
}

// withIndex calls f with the index. It keeps the mapping and catches faults during the call.
func (t *Text) withIndex(ctx context.Context, f func(x *index) error) error {
	return t.run(func() error {
		x, err := t.indexed(ctx)
		if err != nil {
			return err
		}
		return f(x)
	})
}

// Slice returns the bytes of the characters [a,b) and whether they are all ASCII. The bytes are
// part of the mapping: do not write to them, and read them only within [Guard] and before Close. An
// invalid range is an error.
func (t *Text) Slice(ctx context.Context, a, b int64) (data []byte, ascii bool, err error) {
	err = t.withIndex(ctx, func(x *index) error {
		lo, hi, err := x.bytesOf(t.random, "slice", a, b)
		if err != nil {
			return err
		}

		if data = t.random; hi-lo > nearSize { // large enough for reading ahead
			data = t.data
		}
		data = data[lo:hi:hi]
		if ascii = hi-lo == b-a; ascii && x.invalid > 0 { // a character of one byte may be invalid
			ascii, err = t.rangeASCII(ctx, lo, hi)
		}
		return err
	})
	return data, ascii, err
}

func (t *Text) rangeASCII(ctx context.Context, lo, hi int64) (bool, error) {
	for n, i := t.chunks(lo, hi), int64(0); i < n; i++ {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		from, to := t.chunkAt(lo, hi, i)
		if !t.inHole(from, to) && !isASCII(t.data[from:to]) {
			return false, nil
		}
	}
	return true, nil
}
