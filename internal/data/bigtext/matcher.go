package bigtext

import (
	"context"
	"errors"
)

// matcher is the state that one goroutine needs to run a regular expression.
type matcher struct {
	re    *Regexp
	dfa   *dfa
	pike  *pike
	table *byteTable
	valid bool // whether table is for valid texts
}

// maxFree bounds the matchers that a Regexp keeps for reuse.
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

var errNoMatch = errors.New(
	"cannot match: the automaton found a match that the simulation did not: report this expression",
)

// each calls f with the byte positions of the groups of each match that starts in [p,stop), until f
// returns false. Matches follow one another as in CPython's finditer (Modules/_sre/sre.c,
// must_advance): the search continues at the end of the last match; after an empty match, it
// ignores another empty match there.
func (m *matcher) each(
	ctx context.Context, r *region, p, stop int64, f func(loc []int64) bool,
) error {
	if m.dfa == nil {
		m.dfa, m.pike = newDFA(m.re), newPike(m.re)
	}

	for noEmpty := false; ; {
		begin, end, err := m.dfa.find(ctx, r, m.table, p, stop, noEmpty)
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
