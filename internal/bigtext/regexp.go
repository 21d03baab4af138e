package bigtext

import (
	"fmt"
	"regexp/syntax"
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
	prog     *syntax.Prog
	slots    int  // two for each group, and for the whole match
	anchored bool // a match starts at the beginning of the range only
	classes  *classes
	need     []syntax.EmptyOp // by instruction: the assertions before the next character
	start    startSet

	mu   sync.Mutex
	free []*matcher
}

// CompileRegexp compiles expr, in RE2's syntax with Perl's flags (regexp/syntax),
// of at most 64 KiB. The error wraps [ErrTooLarge] if it needs too much.
func CompileRegexp(expr string) (*Regexp, error) {
	if len(expr) > maxExpr {
		return nil, fmt.Errorf(
			"cannot compile the regular expression of %d bytes: %w: use at most %d",
			len(expr), ErrTooLarge, maxExpr)
	}

	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the regular expression: %w: %w", errSyntax, err)
	}

	re := &Regexp{slots: 2 * (tree.MaxCap() + 1)}
	if re.prog, err = syntax.Compile(tree.Simplify()); err != nil {
		return nil, fmt.Errorf("cannot compile the regular expression: %w: %w", errSyntax, err)
	}
	if n := len(re.prog.Inst); n > maxInst || n*re.slots > maxSlots {
		return nil, fmt.Errorf(
			"cannot compile the regular expression: %w: it has %d instructions and %d groups: "+
				"use fewer repetitions, classes or groups",
			ErrTooLarge, n, tree.MaxCap())
	}
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
	re.anchored = re.prog.StartCond()&syntax.EmptyBeginText != 0
	re.start = newStartSet(re)
	return nil
}

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
