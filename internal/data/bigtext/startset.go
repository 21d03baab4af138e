package bigtext

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf16"
	"unicode/utf8"
)

// startSet describes where a match may start, so that the rest can be skipped.
type startSet struct {
	on     bool   // the other fields are meaningful
	prefix string // every match starts with these bytes; may be empty
	one    int    // the only byte that a match may start with; -1: several
	may    [256]bool
}

func newStartSet(re *Regexp) startSet {
	s := startSet{one: -1}
	// With a leading assertion, the preceding byte matters, so nothing can be skipped.
	if re.need[re.prog.Start] != 0 {
		return s
	}

	// Prefix is "" for a program without one.
	if p, _ := re.prog.Prefix(); len(p) > 1 && utf8.ValidString(p) &&
		!bytes.ContainsRune([]byte(p), utf8.RuneError) {
		s.prefix = p[:min(len(p), headSize)] // see needle
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

// addFrom adds the bytes consumed by the instructions that are reached from pc without consuming a
// character. It returns true if the program may match the empty string.
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
			s.addRunes(runeSet(in))
		}
	}

	return empty
}

// addRunes adds the first bytes of the characters of a set, given as pairs of first and last. If
// the set contains invalid characters, it adds all bytes above ASCII.
func (s *startSet) addRunes(set []rune) {
	for i := 0; i < len(set); i += 2 {
		lo, hi := set[i], set[i+1]
		for b := lo; b <= min(hi, utf8.RuneSelf-1); b++ {
			s.may[b] = true
		}
		if hi < utf8.RuneSelf {
			continue
		}

		from, to := firstByte(max(lo, utf8.RuneSelf)), firstByte(hi)
		if lo <= utf8.RuneError && utf8.RuneError <= hi {
			from, to = utf8.RuneSelf, 255
		}
		for b := from; b <= to; b++ {
			s.may[b] = true
		}
	}
}

// firstByte returns the first byte of a character in UTF-8. It is monotonic in the character.
func firstByte(r rune) int {
	if utf16.IsSurrogate(r) {
		return 0xED // for a surrogate, which may be the edge of a set
	}
	return int(utf8.AppendRune(nil, r)[0])
}

// skip returns the first position in [p,hi) where a match may start, or hi. A prefix may end after
// hi, but not after last, the end of the range.
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
