package bigtext

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"sync"
)

// Bounds of a regular expression; they keep the work for one character below
// about a millisecond and the memory below about 100 MiB.
const (
	maxExpr  = 64 << 10 // bytes
	maxInst  = 20000    // instructions of the program
	maxSlots = 1 << 22  // instructions times group ends
)

// Regexp is a compiled regular expression. Any number of goroutines may use it.
type Regexp struct {
	expr     string
	prog     *syntax.Prog
	names    []string
	slots    int  // two for each group, and for the whole match
	oneLine  bool // no match holds a \n
	empty    bool // a match may be empty
	anchored bool // a match starts at the beginning of the range only
	classes  *classes
	need     []syntax.EmptyOp // by instruction: the assertions before the next character
	start    startSet
	literal  string // every match holds it

	mu   sync.Mutex
	free []*matcher
}

// CompileRegexp compiles expr, in RE2's syntax with Perl's flags (regexp/syntax),
// of at most 64 KiB. The error wraps [ErrSyntax], or [ErrTooLarge].
func CompileRegexp(expr string) (*Regexp, error) {
	if len(expr) > maxExpr {
		return nil, fmt.Errorf("cannot compile the regular expression of %d bytes: %w: use at most %d", len(expr), ErrTooLarge, maxExpr)
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the regular expression: %w: %w", ErrSyntax, err)
	}
	re := &Regexp{expr: expr, names: tree.CapNames(), slots: 2 * (tree.MaxCap() + 1)}
	simple := tree.Simplify()
	if re.prog, err = syntax.Compile(simple); err != nil {
		return nil, fmt.Errorf("cannot compile the regular expression: %w: %w", ErrSyntax, err)
	}
	if n := len(re.prog.Inst); n > maxInst || n*re.slots > maxSlots {
		return nil, fmt.Errorf("cannot compile the regular expression: %w: it has %d instructions and %d groups: use fewer repetitions, classes or groups", ErrTooLarge, n, tree.MaxCap())
	}
	re.literal = requiredLiteral(simple)
	if err := re.analyse(); err != nil {
		return nil, err
	}
	return re, nil
}

func (re *Regexp) analyse() error {
	re.need = assertions(re.prog)
	var all syntax.EmptyOp
	for _, op := range re.need {
		all |= op
	}
	c, err := newClasses(re.prog, all)
	if err != nil {
		return err
	}
	re.classes = c
	re.oneLine = true
	nl := int(c.of('\n'))
	for i := range re.prog.Inst {
		if c.matches(&re.prog.Inst[i], nl) {
			re.oneLine = false
		}
	}
	re.anchored = re.prog.StartCond()&syntax.EmptyBeginText != 0
	re.empty = re.matchesEmpty(uint32(re.prog.Start), make([]bool, len(re.prog.Inst)))
	re.start = newStartSet(re)
	return nil
}

// matchesEmpty reports whether the match is reached from pc without a
// character, if all assertions hold.
func (re *Regexp) matchesEmpty(pc uint32, seen []bool) bool {
	if seen[pc] {
		return false
	}
	seen[pc] = true
	switch in := &re.prog.Inst[pc]; in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return re.matchesEmpty(in.Out, seen) || re.matchesEmpty(in.Arg, seen)
	case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
		return re.matchesEmpty(in.Out, seen)
	case syntax.InstMatch:
		return true
	default:
		return false
	}
}

// String returns the expression.
func (re *Regexp) String() string { return re.expr }

// Groups returns the number of groups, without the whole match.
func (re *Regexp) Groups() int { return re.slots/2 - 1 }

// Names returns the names of the groups; "" for the whole match and for those
// without a name.
func (re *Regexp) Names() []string { return re.names }

// assertions returns for each instruction the assertions (^, \b, ...) that are
// reached from it without consuming a character.
func assertions(prog *syntax.Prog) []syntax.EmptyOp {
	need := make([]syntax.EmptyOp, len(prog.Inst))
	for changed := true; changed; {
		changed = false
		for pc := range prog.Inst {
			in, n := &prog.Inst[pc], syntax.EmptyOp(0)
			switch in.Op {
			case syntax.InstAlt, syntax.InstAltMatch:
				n = need[in.Out] | need[in.Arg]
			case syntax.InstCapture, syntax.InstNop:
				n = need[in.Out]
			case syntax.InstEmptyWidth:
				n = need[in.Out] | syntax.EmptyOp(in.Arg)
			default: // consumes a character, or ends
			}
			if n != need[pc] {
				need[pc], changed = n, true
			}
		}
	}
	return need
}

// requiredLiteral returns the longest string found that every match holds; "".
func requiredLiteral(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 && !strings.ContainsRune(string(re.Rune), '\uFFFD') {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiteral(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredLiteral(re.Sub[0])
		}
	case syntax.OpConcat:
		best := ""
		for _, sub := range re.Sub {
			if s := requiredLiteral(sub); len(s) > len(best) {
				best = s
			}
		}
		return best
	default: // need not hold any one string
	}
	return ""
}
