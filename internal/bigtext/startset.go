package bigtext

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"
)

// startSet says where a match may start, to skip what lies between.
type startSet struct {
	on     bool   // the rest says something
	prefix string // every match starts with it; ""
	one    int    // the only byte that a match may start with; -1: several
	may    [256]bool
}

func newStartSet(re *Regexp) startSet {
	s := startSet{one: -1}
	// With an assertion in front, the byte before matters: no skipping.
	if re.need[re.prog.Start] != 0 {
		return s
	}

	// Prefix is "" for a program without one.
	if p, _ := re.prog.Prefix(); len(p) > 1 && utf8.ValidString(p) &&
		!bytes.ContainsRune([]byte(p), utf8.RuneError) {
		s.prefix = p
	}

	empty := s.addFrom(re, re.prog.Start, make([]bool, len(re.prog.Inst)))
	n := 0
	for b, may := range s.may {
		if may {
			n++
			s.one = b
		}
	}

	if n != 1 {
		s.one = -1
	}
	s.on = !empty && n <= 192
	return s
}

// addFrom adds the bytes that the instructions reached from pc without a
// character consume; true when the program may match nothing.
func (s *startSet) addFrom(re *Regexp, pc int, seen []bool) (empty bool) {
	for stack := []int{pc}; len(stack) > 0; {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}

		seen[pc] = true
		switch in := &re.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, int(in.Out), int(in.Arg))
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, int(in.Out))
		case syntax.InstMatch:
			empty = true
		default:
			s.addInst(re.classes, in)
		}
	}

	return empty
}

func (s *startSet) addInst(c *classes, in *syntax.Inst) {
	for b := range utf8.RuneSelf {
		if c.matches(in, int(c.ascii[b])) {
			s.may[b] = true
		}
	}

	for k := range c.n {
		if c.matches(in, k) {
			c.addLeads(&s.may, uint16(k))
		}
	}
}

// addLeads adds the first bytes of the characters above ASCII of class k: all
// bytes above ASCII when an invalid one is of class k.
func (c *classes) addLeads(may *[256]bool, k uint16) {
	if !c.wideClass[k] {
		return
	}
	if k == c.of(utf8.RuneError) {
		for b := utf8.RuneSelf; b < 256; b++ {
			may[b] = true
		}
		return
	}

	for p, page := range c.wide {
		for i, id := range page {
			if r := rune(p<<8 | i); id == k && r >= utf8.RuneSelf {
				may[utf8.AppendRune(nil, r)[0]] = true
				if p >= 8 { // from U+0800 on, a page has one first byte
					break
				}
			}
		}
	}
}

// skip returns the first position in [p,hi) where a match may start, or hi; a
// prefix may end after hi, where last is the end of the range.
func (s *startSet) skip(data []byte, p, hi, last int64) int64 {
	var i int64
	switch {
	case s.prefix != "":
		i = int64(bytes.Index(data[p:min(last, hi+int64(len(s.prefix))-1)], []byte(s.prefix)))
	case s.one >= 0:
		i = indexByte(data[p:hi], byte(s.one))
	default:
		return s.skipBytes(data[:hi], p)
	}

	if i < 0 {
		return hi
	}
	return p + i
}

func (s *startSet) skipBytes(b []byte, p int64) int64 {
	for ; p+4 <= int64(len(b)); p += 4 {
		w := (*[4]byte)(b[p:])
		if s.may[w[0]] || s.may[w[1]] || s.may[w[2]] || s.may[w[3]] {
			break
		}
	}

	for p < int64(len(b)) && !s.may[b[p]] {
		p++
	}
	return p
}
