package bigtext

import "context"

// region is the range [lo,hi) of bytes that a regular expression sees.
type region struct {
	data   []byte
	lo, hi int64
	valid  bool // it is valid UTF-8
}

// decode marks, in a byte table, the bytes whose class is told by more of them.
const decode = 1<<16 - 1

// byteTable gives each byte its class.
type byteTable [256]uint16

// table returns the byte table for texts that are valid UTF-8, or for all. In a
// valid text whose characters above ASCII are of one class, the first byte of
// such a character stands for it and the others change nothing: no decoding.
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

// maxMisses is how many transitions a search computes between two looks at its
// context.
const maxMisses = 64

// find looks for the leftmost match that starts at from or later, and before
// stop, which is the region's end or follows a \n that no match can hold. It
// returns the match's end, -1 for none, and a position from where on the
// match starts: from, or later when the automaton tracks that.
func (d *dfa) find(ctx context.Context, r *region, t *byteTable, from, stop int64, noEmpty bool) (begin, end int64, err error) {
	f := dfaFind{d: d, r: r, t: t, p: from, begin: from, end: -1}
	f.s = d.startState(before(r.data, r.lo, from), noEmpty)
	f.dead = len(d.states[f.s>>d.shift].list) == 0
	if d.re.start.on {
		f.skip(min(stop, from+searchStep))
	}
	for f.p < stop && !f.dead {
		if err := ctx.Err(); err != nil {
			return from, -1, err
		}
		d.misses = 0
		f.run(min(stop, f.p+searchStep))
	}
	if !f.dead && stop == r.hi && d.move(f.s, d.re.classes.end)&transMatch != 0 {
		f.end = r.hi
	}
	return nextBoundary(r.data, f.begin), f.end, nil
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
}

// move returns the transition of state s with class k.
func (d *dfa) move(s uint32, k int) uint32 {
	if t := d.trans[int(s)+k]; t&transUnknown == 0 {
		return t
	}
	return d.step(s, k)
}

// run goes on to hi, or until no thread is left or many transitions were computed.
func (f *dfaFind) run(hi int64) {
	data, table := f.r.data[:f.r.hi], f.t
	for f.p < hi && !f.dead && f.d.misses < maxMisses {
		// The fast part: nothing but transitions without flags.
		trans, p, s := f.d.trans, f.p, f.s
		var k uint16
		var t uint32
		for p < hi {
			if k = table[data[p]]; k == decode {
				break
			}
			if t = trans[s+uint32(k)]; t >= transStart {
				break
			}
			s = t
			p++
		}
		f.p, f.s = p, s
		if p < hi {
			f.slow(int(k), hi)
		}
	}
}

// slow makes one transition of any sort.
func (f *dfaFind) slow(k int, hi int64) {
	w := int64(1)
	if k == decode {
		k, w = f.d.re.classes.at(f.r.data, f.p, f.r.hi)
	}
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

// skip goes on to where a match may start, at most to hi; the state holds
// nothing but loop.
func (f *dfaFind) skip(hi int64) {
	if f.p < hi {
		f.p = f.d.re.start.skip(f.r.data, f.p, hi, f.r.hi)
		f.begin = f.p
	}
}
