package bigtext

import (
	"encoding/binary"
	"math/bits"
	"regexp/syntax"
)

// A dfa represents the program as an automaton whose states are built when first reached, after R.
// Cox, "Regular Expression Matching in the Wild" (2010), section "Run DFA". A state is the ordered
// list of the instructions that the threads of a backtracking match would be at, the preferred
// first; the list ends with loop while no match has been found, which starts another thread at each
// character. Processing the list in order and dropping everything after a match yields the leftmost
// match, and among those the one that Perl prefers; it yields the end of the match, not its
// beginning.
//
// The instructions in a state are those directly after a consumed character: instructions that
// consume nothing (alternatives, assertions) are processed together with the next character,
// because that character decides whether \b or $ hold. So a transition records whether a match
// ended before its character.
type dfa struct {
	re     *Regexp
	shift  uint // shifts state numbers to indices of trans
	trans  []uint32
	states []dstate
	ids    map[string]uint32
	starts [16]uint32 // by properties before, and noEmpty; 0: not built
	max    int        // number of states
	misses int        // transitions computed since the last check of the context
	budget int64      // bytes until the next check

	seen    sparse // instructions of the current step
	next    sparse // the list being built
	stack   []uint32
	keyBuf  []byte
	listBuf []uint32
}

// dstate is a state: a list, and the information that assertions in the next step need.
type dstate struct {
	list    []uint32
	before  uint8
	noEmpty bool // a match that ends here is ignored (see Regexp's iteration)
}

// loop in a list stands for the program's beginning at each further character.
const loop = 1<<32 - 1

// A transition is the shifted number of the next state, with these flags.
const (
	transUnknown uint32 = 1 << 31 // not computed yet
	transMatch   uint32 = 1 << 30 // a match ended before the character
	transDead    uint32 = 1 << 29 // no thread remains
	transStart   uint32 = 1 << 28 // the next state contains only loop
	transFlags          = transUnknown | transMatch | transDead | transStart
)

// dfaEntries bounds the transitions in memory, which take 4 MiB.
const dfaEntries = 1 << 20

func newDFA(re *Regexp) *dfa {
	d := &dfa{re: re}
	d.shift = uint(bits.Len(uint(re.classes.end + 1))) // one more for the bytes inside a character
	d.max = max(16, dfaEntries>>d.shift)

	// Lists take memory, too.
	d.max = max(16, min(d.max, dfaEntries/len(re.prog.Inst)))
	d.seen.init(len(re.prog.Inst))
	d.next.init(len(re.prog.Inst))
	d.flush()
	return d
}

// inside is the class of the second to last bytes of a character above ASCII: it leaves every state
// unchanged.
func (d *dfa) inside() int { return d.re.classes.end + 1 }

// flush discards all states. State 0 is the dead state.
func (d *dfa) flush() {
	d.trans = d.trans[:0]
	d.states = d.states[:0]
	d.ids = map[string]uint32{}
	d.starts = [16]uint32{}
	d.intern(dstate{})
}

// intern returns the shifted number of the state s; it copies s.list.
func (d *dfa) intern(s dstate) uint32 {
	key := d.keyBuf[:0]
	key = append(key, s.before, byte(b2i(s.noEmpty)))
	for _, pc := range s.list {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	d.keyBuf = key
	if id, ok := d.ids[string(key)]; ok {
		return id
	}
	if len(d.states) >= d.max {
		d.flush()
		return d.intern(s) // the key's buffer was reused meanwhile
	}

	id := uint32(len(d.states)) << d.shift
	s.list = append([]uint32(nil), s.list...)
	d.states = append(d.states, s)
	d.ids[string(key)] = id
	for range 1 << d.shift {
		d.trans = append(d.trans, transUnknown)
	}
	d.trans[int(id)+d.inside()] = id

	return id
}

// startState returns the state for a search from a position with the given properties before it.
func (d *dfa) startState(before uint8, noEmpty bool) uint32 {
	slot := int(before) | int(b2i(noEmpty))<<3
	if id := d.starts[slot]; id != 0 {
		return id
	}

	list := []uint32{loop}
	if d.re.anchored {
		if before&seenEdge == 0 {
			return 0
		}
		list = []uint32{uint32(d.re.prog.Start)}
	}

	id := d.intern(dstate{list, d.mask(list, before), noEmpty})
	d.starts[slot] = id
	return id
}

// mask removes from before everything that no assertion reachable from the list needs.
func (d *dfa) mask(list []uint32, before uint8) uint8 {
	var need syntax.EmptyOp
	for _, pc := range list {
		if pc == loop {
			pc = uint32(d.re.prog.Start)
		}
		need |= d.re.need[pc]
	}

	var keep uint8
	if need&wordOps != 0 {
		keep |= seenWord
	}
	if need&syntax.EmptyBeginLine != 0 {
		keep |= seenNewline | seenEdge
	}
	if need&syntax.EmptyBeginText != 0 {
		keep |= seenEdge
	}

	return before & keep
}

// step computes the transition from state id with a character of class k.
func (d *dfa) step(id uint32, k int) uint32 {
	d.misses++
	s := d.states[id>>d.shift]
	attr := d.re.classes.attr[k]
	hold := holding(s.before, attr)
	d.seen.clear()
	d.next.clear()
	list := d.listBuf[:0]
	matched, again := false, false
	for _, pc := range s.list {
		if again = pc == loop; again {
			pc = uint32(d.re.prog.Start)
		}
		if list, matched = d.walk(list, pc, hold, k, s.noEmpty); matched {
			break
		}
	}

	if again && !matched && k != d.re.classes.end {
		list = append(list, loop)
	}
	d.listBuf = list
	return d.arrive(id, k, dstate{list: list, before: attr}, matched)
}

// arrive stores the transition of state id with class k into state s.
func (d *dfa) arrive(id uint32, k int, s dstate, matched bool) uint32 {
	s.before = d.mask(s.list, s.before)
	n := len(d.states)
	to := d.intern(s)
	t := to
	if matched {
		t |= transMatch
	}

	switch {
	case len(s.list) == 0:
		t |= transDead
	case len(s.list) == 1 && s.list[0] == loop:
		t |= transStart
	}

	if len(d.states) >= n { // not flushed: id is still a state
		d.trans[int(id)+k] = t
	}
	return t
}

// walk follows the program from pc without consuming a character, in the order of a backtracking
// match, and appends to list the successors of instructions that consume class k. It returns true
// when it reaches the match.
func (d *dfa) walk(
	list []uint32, pc uint32, hold syntax.EmptyOp, k int, noEmpty bool,
) ([]uint32, bool) {
	d.stack = append(d.stack[:0], pc)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if !d.seen.add(pc) {
			continue
		}

		switch in := &d.re.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^hold == 0 {
				d.stack = append(d.stack, in.Out)
			}
		case syntax.InstMatch:
			if !noEmpty {
				return list, true
			}
		default:
			if d.re.classes.matches(in, k) {
				if out := d.re.plain(in.Out); d.next.add(out) {
					list = append(list, out)
				}
			}
		}
	}

	return list, false
}

// plain skips instructions at pc that do nothing for an automaton, so that fewer states differ.
func (re *Regexp) plain(pc uint32) uint32 {
	for {
		in := &re.prog.Inst[pc]
		if in.Op != syntax.InstNop && in.Op != syntax.InstCapture {
			return pc
		}
		pc = in.Out
	}
}

// sparse is a set of small numbers with a constant-time clear (Briggs and Torczon, "An efficient
// representation for sparse sets", 1993).
type sparse struct {
	dense, at []uint32
}

func (s *sparse) init(n int) { s.dense, s.at = make([]uint32, 0, n), make([]uint32, n) }

func (s *sparse) clear() { s.dense = s.dense[:0] }

// add adds v and reports whether it was new.
func (s *sparse) add(v uint32) bool {
	if i := s.at[v]; int(i) < len(s.dense) && s.dense[i] == v {
		return false
	}
	s.at[v] = uint32(len(s.dense))
	s.dense = append(s.dense, v)
	return true
}
