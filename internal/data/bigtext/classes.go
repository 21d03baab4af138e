package bigtext

import (
	"context"
	"encoding/binary"
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// classes partitions the characters. The program treats all characters of a class alike, so the
// automaton has one transition for each state and class. An invalid byte is treated as U+FFFD, as
// in package regexp.
type classes struct {
	n     int     // number of classes, without end
	end   int     // the class of the end of the range: n
	rep   []rune  // one character of each class
	attr  []uint8 // attributes of each class, and of end, that assertions check
	ascii [128]uint16
	wide  [][]uint16 // by r>>8, then r&0xFF; pages are shared
	// uniform reports whether all characters above ASCII are of class other.
	uniform bool
	other   uint16
}

// Assertions test these properties of the characters around a position.
const (
	seenWord    uint8 = 1 << iota // [0-9A-Za-z_]
	seenNewline                   // \n
	seenEdge                      // no character: the beginning or end of the range
)

const wordOps = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary

// maxClassWork bounds the steps of newClasses, maxClasses the classes that it returns.
const (
	maxClassWork = 1 << 26
	maxClasses   = 1 << 14
)

// newClasses returns the classes of the program, which uses the assertions ops.
func newClasses(ctx context.Context, prog *syntax.Prog, ops syntax.EmptyOp) (*classes, error) {
	sets := runeSets(prog)
	if ops&wordOps != 0 {
		sets = append(sets, []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'})
	}

	// \n always has its own class: many searches go line by line.
	sets = append(sets, []rune{'\n', '\n'})
	edges := []rune{0, utf8.RuneSelf}
	for _, set := range sets {
		for i := 0; i < len(set); i += 2 {
			edges = append(edges, set[i], set[i+1]+1)
		}
	}

	slices.Sort(edges)
	edges = slices.Compact(edges)
	if len(edges)*len(sets) > maxClassWork {
		return nil, fmt.Errorf(
			"cannot compile the regular expression: %w: it has %d different character classes with %d bounds: "+
				"use fewer classes",
			ErrTooLarge, len(sets), len(edges))
	}

	class, err := refine(ctx, edges, sets)
	if err != nil {
		return nil, err
	}
	c := &classes{}
	c.number(edges, class)
	if c.n > maxClasses {
		return nil, fmt.Errorf(
			"cannot compile the regular expression: %w: it distinguishes %d classes of "+
				"characters: use at most %d",
			ErrTooLarge, c.n, maxClasses)
	}

	return c, nil
}

// runeSets returns the distinct sets of characters in the instructions, each as pairs of first and
// last.
func runeSets(prog *syntax.Prog) [][]rune {
	var sets [][]rune
	seen := map[string]bool{}
	for i := range prog.Inst {
		set := runeSet(&prog.Inst[i])
		var key []byte
		for _, r := range set {
			key = binary.LittleEndian.AppendUint32(key, uint32(r))
		}

		if key := string(key); len(set) > 0 && !seen[key] {
			seen[key] = true
			sets = append(sets, set)
		}
	}
	return sets
}

func runeSet(in *syntax.Inst) []rune {
	switch in.Op {
	case syntax.InstRuneAny:
		return []rune{0, unicode.MaxRune}
	case syntax.InstRuneAnyNotNL:
		return []rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}
	case syntax.InstRune, syntax.InstRune1:
		if len(in.Rune) != 1 {
			return in.Rune
		}
		r0 := in.Rune[0]
		set := []rune{r0, r0}
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			for r := unicode.SimpleFold(r0); r != r0; r = unicode.SimpleFold(r) {
				set = append(set, r, r)
			}
		}
		return set
	default: // consumes nothing
		return nil
	}
}

// refine returns a number for each interval between two edges. Intervals in the same sets have the
// same number.
func refine(ctx context.Context, edges []rune, sets [][]rune) ([]int, error) {
	class := make([]int, len(edges))
	next := 1
	for _, set := range sets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		split := map[int]int{}
		for i := 0; i < len(set); i += 2 {
			from, _ := slices.BinarySearch(edges, set[i])
			for k := from; k < len(edges) && edges[k] <= set[i+1]; k++ {
				to, ok := split[class[k]]
				if !ok {
					to = next
					next++
					split[class[k]] = to
				}

				class[k] = to
			}
		}
	}

	return class, nil
}

// number renumbers the classes with small numbers and fills the tables.
func (c *classes) number(edges []rune, class []int) {
	small := map[int]uint16{}
	ids := make([]uint16, len(edges))
	for i, r := range edges {
		if r > unicode.MaxRune {
			break
		}
		id, ok := small[class[i]]
		if !ok {
			id = uint16(len(c.rep))
			small[class[i]] = id
			c.rep = append(c.rep, r)
			c.attr = append(c.attr, seen(r))
		}

		ids[i] = id
	}

	c.n, c.end = len(c.rep), len(c.rep)
	c.attr = append(c.attr, seenEdge)
	c.fill(edges, ids)
}

func seen(r rune) uint8 {
	if syntax.IsWordChar(r) {
		return seenWord
	}
	return uint8(b2i(r == '\n')) * seenNewline
}

func (c *classes) fill(edges []rune, ids []uint16) {
	shared := map[uint16][]uint16{}
	i := 0
	at := func(r rune) uint16 {
		for i+1 < len(edges) && edges[i+1] <= r {
			i++
		}
		return ids[i]
	}
	for p := rune(0); p <= unicode.MaxRune>>8; p++ {
		first := at(p << 8)
		whole := i+1 >= len(edges) || edges[i+1] > p<<8|0xff
		page := shared[first]
		if !whole || page == nil {
			page = make([]uint16, 256)
			for k := range page {
				page[k] = at(p<<8 | rune(k))
			}
		}

		if whole {
			shared[first] = page
		}
		c.wide = append(c.wide, page)
	}

	copy(c.ascii[:], c.wide[0])
	c.other = c.of(utf8.RuneSelf)
	c.uniform = true

	for k, r := range edges { // one edge is the first character above ASCII
		if r >= utf8.RuneSelf && r <= unicode.MaxRune {
			c.uniform = c.uniform && ids[k] == c.other
		}
	}
}

// of returns the class of r.
func (c *classes) of(r rune) uint16 { return c.wide[r>>8][r&0xff] }

// matches reports whether in consumes the characters of class k.
func (c *classes) matches(in *syntax.Inst, k int) bool {
	if k >= c.n {
		return false
	}

	switch in.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return in.MatchRune(c.rep[k])
	default:
		return false
	}
}

// at returns the class of the character at p, and its width in bytes; at hi, it returns the class
// end and 0.
func (c *classes) at(data []byte, p, hi int64) (class int, width int64) {
	if p >= hi {
		return c.end, 0
	}
	if b := data[p]; b < utf8.RuneSelf {
		return int(c.ascii[b]), 1
	}
	r, w := utf8.DecodeRune(data[p:hi])
	return int(c.of(r)), int64(w)
}

// before returns the properties that assertions test before p, in a range that starts at lo. It
// reads only one byte, because assertions distinguish only ASCII characters.
func before(data []byte, lo, p int64) uint8 {
	switch {
	case p <= lo:
		return seenEdge
	case data[p-1] >= utf8.RuneSelf:
		return 0
	}
	return seen(rune(data[p-1]))
}

// holding returns the assertions that hold between the properties before and after.
func holding(before, after uint8) syntax.EmptyOp {
	var op syntax.EmptyOp
	if before&seenEdge != 0 {
		op |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	if before&seenNewline != 0 {
		op |= syntax.EmptyBeginLine
	}
	if after&seenEdge != 0 {
		op |= syntax.EmptyEndText | syntax.EmptyEndLine
	}
	if after&seenNewline != 0 {
		op |= syntax.EmptyEndLine
	}
	if (before^after)&seenWord != 0 {
		return op | syntax.EmptyWordBoundary
	}

	return op | syntax.EmptyNoWordBoundary
}
