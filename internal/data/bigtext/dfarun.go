package bigtext

import "context"

// region is the range [lo,hi) of bytes visible to a regular expression.
type region struct {
	data   []byte
	lo, hi int64
	valid  bool // the text is valid UTF-8
	// skipHole returns the end of the hole that contains a position, or the position itself; it is
	// nil if the text has no holes.
	skipHole func(p int64) int64
}

// decode marks bytes in a byte table whose class depends on the following bytes.
const decode = 1<<16 - 1

// byteTable maps each byte to its class.
type byteTable [256]uint16

// table returns the byte table for valid UTF-8 texts, or for all texts. In a valid text in which
// all characters above ASCII are of one class, the first byte of such a character represents the
// character and the others change nothing, so no decoding is needed.
func (re *Regexp) table(valid bool) *byteTable {
	t := &byteTable{}
	copy(t[:], re.classes.ascii[:])

	for b := 0x80; b < 256; b++ {
		switch {
		case !valid || !re.classes.uniform:
			t[b] = decode
		case b < 0xc0:
			t[b] = uint16(re.classes.end + 1)
		default:
			t[b] = re.classes.other
		}
	}
	return t
}

// maxMisses is the number of transitions that a search computes between two checks of its context.
const maxMisses = 64

// find finds the leftmost match that starts at or after from, and before stop, which is the
// region's end or follows a \n that no match can contain. It returns the match's end, or -1, and a
// position at or before its start.
func (d *dfa) find(
	ctx context.Context, r *region, t *byteTable, from, stop int64, noEmpty bool,
) (begin, end int64, err error) {
	f := dfaFind{d: d, r: r, t: t}
	f.start(from, stop, noEmpty)
	if err := f.finish(ctx); err != nil {
		return from, -1, err
	}
	return nextBoundary(r.data, f.begin), f.end, nil
}

// start starts a search.
func (f *dfaFind) start(from, stop int64, noEmpty bool) {
	f.p, f.begin, f.end, f.stop = from, from, -1, stop
	f.s = f.d.startState(before(f.r.data, f.r.lo, from), noEmpty)
	f.dead = f.s == 0
	if f.d.re.start.on {
		f.skip(min(stop, from+searchStep))
	}
}

// finish runs the search to its end.
func (f *dfaFind) finish(ctx context.Context) error {
	stop := f.stop
	for f.p < stop && !f.dead {
		// Most searches take no longer than a check of the context.
		if f.d.budget <= 0 || f.d.misses >= maxMisses {
			f.d.budget, f.d.misses = searchStep, 0
			if err := ctx.Err(); err != nil {
				return err
			}
		}

		p := f.p
		f.run(min(stop, p+searchStep))
		f.d.budget -= f.p - p + 16
	}

	if !f.dead && stop == f.r.hi && f.d.move(f.s, f.d.re.classes.end)&transMatch != 0 {
		f.end = stop
	}
	return nil
}

// dfaFind is the state of a find.
type dfaFind struct {
	d          *dfa
	r          *region
	t          *byteTable
	p          int64
	s          uint32
	dead       bool
	begin, end int64
	stop       int64 // see find
}

// move returns the transition of state s with class k.
func (d *dfa) move(s uint32, k int) uint32 {
	if t := d.trans[int(s)+k]; t&transUnknown == 0 {
		return t
	}
	return d.step(s, k)
}

// run advances to hi, or until no thread remains or maxMisses transitions were computed.
func (f *dfaFind) run(hi int64) {
	for f.p < hi && !f.dead && f.d.misses < maxMisses {
		if k, w := f.fast(hi); w > 0 {
			f.slow(k, w, hi)
		}
	}
}

// fast makes transitions up to hi, or up to the first one that needs more than a table; it does not
// make that transition, but returns its class k and its width w in bytes.
func (f *dfaFind) fast(hi int64) (k int, w int64) {
	data, table, trans := f.r.data[:f.r.hi], f.t, f.d.trans
	p, s := f.p, f.s
	for p < hi {
		k, w = int(table[data[p]]), 1
		if k == decode {
			k, w = f.d.re.classes.at(data, p, int64(len(data)))
		}
		t := trans[int(s)+k]
		if t >= transStart {
			if t>>28 != transMatch>>28 {
				f.p, f.s = p, s
				return k, w
			}
			f.end = p
		}

		s = t &^ transMatch
		p += w
	}

	f.p, f.s = p, s
	return 0, 0
}

// slow makes one transition of any kind, with a character of w bytes and class k.
func (f *dfaFind) slow(k int, w, hi int64) {
	t := f.d.move(f.s, k)
	if t&transMatch != 0 {
		f.end = f.p
	}
	f.dead = t&transDead != 0
	f.s = t &^ transFlags
	f.p += w

	if t&transStart != 0 {
		f.begin = f.p
		if f.d.re.start.on {
			f.skip(hi)
		}
	}
}

// skip advances to the next position where a match may start, at most to hi; the state must contain
// only loop.
func (f *dfaFind) skip(hi int64) {
	if f.r.skipHole != nil && !f.d.re.start.may[0] && f.p < hi {
		f.p = min(f.stop, f.r.skipHole(f.p)) // a hole contains only NULs, so it is not read
		f.begin = f.p
	}
	if f.p < hi {
		f.p = f.d.re.start.skip(f.r.data, f.p, hi, f.r.hi)
		f.begin = f.p
	}
}
