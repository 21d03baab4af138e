package bigtext

import (
	"bytes"
	"context"
	"errors"
)

// matcher is what one goroutine needs to run a regular expression.
type matcher struct {
	re       *Regexp
	counting *dfa // finds ends
	tracking *dfa // finds beginnings, too, a little slower
	pike     *pike
	table    *byteTable
	valid    bool // what table is for

	hops, hopped int64 // see nextLine
}

// maxFree bounds the matchers that a Regexp keeps for later.
const maxFree = 16

func (re *Regexp) borrow(valid bool) *matcher {
	re.mu.Lock()
	defer re.mu.Unlock()
	var m *matcher
	if n := len(re.free); n > 0 {
		m = re.free[n-1]
		re.free = re.free[:n-1]
	} else {
		m = &matcher{re: re}
	}
	if m.table == nil || m.valid != valid {
		m.table, m.valid = re.table(valid), valid
	}
	m.hops, m.hopped = 0, 0
	return m
}

// giveBack keeps m for the next borrow.
func (re *Regexp) giveBack(m *matcher) {
	re.mu.Lock()
	defer re.mu.Unlock()
	if len(re.free) < maxFree {
		re.free = append(re.free, m)
	}
}

var errNoMatch = errors.New("cannot match: the automaton found a match that the simulation did not: report this expression")

// each calls f with the byte positions of the groups of each match that starts
// in [p,stop), until it returns false. Matches follow each other as those of
// CPython's finditer do (Modules/_sre/sre.c, must_advance): the search goes on
// at the end of the last match; after an empty match, without another empty
// match there.
func (m *matcher) each(ctx context.Context, r *region, p, stop int64, f func(loc []int64) bool) error {
	if m.tracking == nil {
		m.tracking, m.pike = newDFA(m.re, true), newPike(m.re)
	}
	for noEmpty := false; ; {
		begin, end, err := m.tracking.find(ctx, r, m.table, p, stop, noEmpty)
		if err != nil || end < 0 {
			return err
		}
		loc, err := m.pike.run(ctx, r, begin, noEmpty && begin == p)
		if err != nil {
			return err
		}
		if len(loc) == 0 || loc[1] != end {
			return errNoMatch
		}
		p, noEmpty = end, loc[0] == end
		if !f(loc) {
			return nil
		}
	}
}

// count counts the matches that start in [p,stop).
func (m *matcher) count(ctx context.Context, r *region, p, stop int64) (n int64, err error) {
	if m.re.empty {
		err = m.each(ctx, r, p, stop, func([]int64) bool { n++; return true })
		return n, err
	}
	if m.counting == nil {
		m.counting = newDFA(m.re, false)
	}
	for p < stop {
		lo, hi := m.nextLine(r, p, stop)
		k, err := m.counting.count(ctx, r, m.table, lo, hi)
		if err != nil {
			return n, err
		}
		n += k
		p = hi
	}
	return n, nil
}

// Hops from line to line are worth while when they are long.
const (
	tryHops = 64
	minHop  = 256 // bytes
)

// nextLine returns the next bytes of [p,stop) to look at: all, or, when no match
// holds a \n and each holds a literal, the next line that holds it.
func (m *matcher) nextLine(r *region, p, stop int64) (lo, hi int64) {
	data, lit := r.data, m.re.literal
	if !m.re.oneLine || lit == "" || m.re.start.prefix != "" || r.skipHole != nil ||
		m.hops >= tryHops && m.hopped < m.hops*minHop {
		return p, stop
	}
	i := int64(bytes.Index(data[p:min(stop, p+searchStep)], []byte(lit)))
	if i < 0 {
		// The literal may lie across the end of the step: look again from its line.
		if hi = p + searchStep; hi >= stop {
			return stop, stop
		}
		lo = p + int64(bytes.LastIndexByte(data[p:hi], '\n')) + 1
		if lo > p {
			return lo, lo
		}
		return p, m.lineEnd(data, hi, stop)
	}
	m.hops++
	lo = p + int64(bytes.LastIndexByte(data[p:p+i], '\n')) + 1
	hi = m.lineEnd(data, p+i, stop)
	m.hopped += hi - p
	return lo, hi
}

func (m *matcher) lineEnd(data []byte, p, stop int64) int64 {
	if i := indexByte(data[p:stop], '\n'); i >= 0 {
		return p + i + 1
	}
	return stop
}
