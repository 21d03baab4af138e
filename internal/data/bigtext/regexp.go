package bigtext

import (
	"context"
	"fmt"
	"regexp/syntax"
	"sync"
)

// The bounds of a regular expression keep the work for one character below about a millisecond and
// the memory below about 100 MiB.
const (
	maxExpr  = 64 << 10 // bytes
	maxInst  = 20000    // instructions of the program
	maxSlots = 1 << 22  // instructions times group ends
)

// Regexp is a compiled regular expression. It is safe for concurrent use.
type Regexp struct {
	prog     *syntax.Prog
	slots    int  // two for each group, and two for the whole match
	anchored bool // a match can only start at the beginning of the range
	classes  *classes
	need     []syntax.EmptyOp // by instruction: the assertions before the next character
	start    startSet

	mu   sync.Mutex
	free []*matcher
}

// CompileRegexp compiles expr, in RE2's syntax with Perl's flags (regexp/syntax), of at most 64
// KiB. The error wraps [ErrTooLarge] if the program exceeds the bounds.
func CompileRegexp(ctx context.Context, expr string) (*Regexp, error) {
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
	least := countInst(tree)
	if least <= maxInst { // a larger program takes long to compile
		if re.prog, err = syntax.Compile(tree.Simplify()); err != nil {
			return nil, fmt.Errorf("cannot compile the regular expression: %w: %w", errSyntax, err)
		}
		least = len(re.prog.Inst)
	}
	if least > maxInst || least*re.slots > maxSlots {
		return nil, fmt.Errorf(
			"cannot compile the regular expression: %w: it needs at least %d instructions and has %d groups: "+
				"use fewer repetitions, classes or groups",
			ErrTooLarge, least, tree.MaxCap())
	}
	if err := re.analyse(ctx); err != nil {
		return nil, err
	}

	return re, nil
}

// countInst returns a lower bound on the number of instructions for a tree.
func countInst(tree *syntax.Regexp) int {
	n := 0
	switch tree.Op { //nolint:exhaustive // the others consist of their subtrees
	case syntax.OpLiteral:
		n = len(tree.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpCapture:
		n = 1
	}
	for _, sub := range tree.Sub {
		n += countInst(sub)
	}
	if tree.Op == syntax.OpRepeat {
		n *= max(tree.Min, tree.Max)
	}
	return n
}

func (re *Regexp) analyse(ctx context.Context) error {
	re.need = assertions(re.prog)
	var all syntax.EmptyOp
	for _, op := range re.need {
		all |= op
	}
	c, err := newClasses(ctx, re.prog, all)
	if err != nil {
		return err
	}

	re.classes = c
	re.anchored = re.prog.StartCond()&syntax.EmptyBeginText != 0
	re.start = newStartSet(re)
	return nil
}

// assertions returns for each instruction the assertions (^, \b, ...) that are reached from it
// without consuming a character. It starts with the last instruction, because most instructions
// lead to later ones.
func assertions(prog *syntax.Prog) []syntax.EmptyOp {
	need := make([]syntax.EmptyOp, len(prog.Inst))
	for changed := true; changed; {
		changed = false
		for pc := len(prog.Inst) - 1; pc >= 0; pc-- {
			in, n := &prog.Inst[pc], syntax.EmptyOp(0)
			switch in.Op {
			case syntax.InstAlt, syntax.InstAltMatch:
				n = need[in.Out] | need[in.Arg]
			case syntax.InstCapture, syntax.InstNop:
				n = need[in.Out]
			case syntax.InstEmptyWidth:
				n = need[in.Out] | syntax.EmptyOp(in.Arg)
			default: // consumes a character, or ends the match
			}

			if n != need[pc] {
				need[pc], changed = n, true
			}
		}
	}

	return need
}
