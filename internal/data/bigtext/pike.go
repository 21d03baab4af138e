package bigtext

import (
	"context"
	"regexp/syntax"
)

// pike finds the groups of a match by simulating all threads of a backtracking match
// simultaneously, each with its own group ends (R. Cox, "Regular Expression Matching: the Virtual
// Machine Approach", 2009, section "Pike's Implementation"). Its lists are the same as those of the
// automaton in dfa.go, so both find the same match.
type pike struct {
	re        *Regexp
	now, then threads
	seen      sparse
	cap       []int64 // the current thread's captures
	match     []int64
	noEmpty   int64 // an empty match here does not count; -1: nowhere
}

// threads is an ordered list of instructions, each with its group ends.
type threads struct {
	in   sparse
	caps []int64
}

// pikeStep is the number of group ends that are copied, or 64 times the number of characters
// that are read, between two checks of the context.
const pikeStep = 1 << 20

func newPike(re *Regexp) *pike {
	m := &pike{re: re, cap: make([]int64, re.slots), match: make([]int64, re.slots)}
	m.seen.init(len(re.prog.Inst))
	m.now.in.init(len(re.prog.Inst))
	m.then.in.init(len(re.prog.Inst))
	return m
}

// run returns the byte positions of the groups of the leftmost match in the region that starts at
// or after from, or nil. They are valid until the next run. noEmpty means that an empty match at
// from does not count: threads that reach it end, as CPython's do after an empty match.
func (m *pike) run(ctx context.Context, r *region, from int64, noEmpty bool) ([]int64, error) {
	m.noEmpty = -1
	if noEmpty {
		m.noEmpty = from
	}
	m.now.clear()
	found := false
	seenBefore := before(r.data, r.lo, from)
	for p, work := from, 0; ; {
		if work += pikeStep / 64; work >= pikeStep {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			work = 0
		}
		work += len(m.now.caps)
		k, w := m.re.classes.at(r.data, p, r.hi)
		starts := !found && (!m.re.anchored || p == r.lo)
		if m.step(p, k, holding(seenBefore, m.re.classes.attr[k]), starts) {
			found = true
		}
		m.now, m.then = m.then, m.now
		if p >= r.hi || len(m.now.in.dense) == 0 && (found || m.re.anchored) {
			break
		}

		seenBefore = m.re.classes.attr[k] &^ seenEdge
		p += w
	}

	if !found {
		return nil, nil
	}
	return m.match, nil
}

func (t *threads) clear() {
	t.in.clear()
	t.caps = t.caps[:0]
}

// step builds the list then from the list now for a character of class k at p. It returns true if a
// thread reached the match, and drops the threads after that one.
func (m *pike) step(p int64, k int, hold syntax.EmptyOp, starts bool) bool {
	m.seen.clear()
	m.then.clear()

	for i, pc := range m.now.in.dense {
		copy(m.cap, m.now.caps[i*len(m.cap):])
		if m.walk(pc, p, k, hold) {
			return true
		}
	}

	if !starts {
		return false
	}
	for i := range m.cap {
		m.cap[i] = -1
	}
	m.cap[0] = p
	return m.walk(uint32(m.re.prog.Start), p, k, hold)
}

// walk is like dfa.walk, with groups; its depth is bounded by maxInst.
func (m *pike) walk(pc uint32, p int64, k int, hold syntax.EmptyOp) bool {
	if !m.seen.add(pc) {
		return false
	}

	switch in := &m.re.prog.Inst[pc]; in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return m.walk(in.Out, p, k, hold) || m.walk(in.Arg, p, k, hold)
	case syntax.InstNop:
		return m.walk(in.Out, p, k, hold)
	case syntax.InstCapture:
		was := m.cap[in.Arg]
		m.cap[in.Arg] = p
		found := m.walk(in.Out, p, k, hold)
		m.cap[in.Arg] = was
		return found
	case syntax.InstEmptyWidth:
		return syntax.EmptyOp(in.Arg)&^hold == 0 && m.walk(in.Out, p, k, hold)
	case syntax.InstMatch:
		if p == m.noEmpty {
			return false
		}
		copy(m.match, m.cap)
		m.match[1] = p
		return true
	default:
		if m.re.classes.matches(in, k) && m.then.in.add(in.Out) {
			m.then.caps = append(m.then.caps, m.cap...)
		}
		return false
	}
}
