package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// problem is a violation that has not been formatted yet.
type problem struct {
	path    []string
	message string
	got     string   // the type of the value, if its type is wrong
	want    []string // the types that it should have
	isFixed bool     // the value differs from a const or an enum
}

// newProblem returns a problem of a value as a whole.
func newProblem(e *fault, format string, args ...any) problem {
	return problem{path: e.path, message: fmt.Sprintf(format, args...)}
}

// newTypeProblem returns the problem of a value of the wrong type.
func newTypeProblem(e *fault, want []string, got string) problem {
	p := newProblem(e, "must be %s, is %s", strings.Join(want, " or "), got)
	p.got, p.want = got, want
	return p
}

// newFixedProblem returns the problem of a value that differs from a const or an enum.
func newFixedProblem(e *fault, want string) problem {
	p := newProblem(e, "%s, is %s", want, formatValue(e.n))
	p.isFixed = true
	return p
}

// flattener turns faults into problems. There may be millions of faults, but only the first
// problems are shown.
type flattener struct {
	left    int  // number of problems that may still be created
	isShort bool // some faults were left out
}

const (
	// maxProblems is the maximum number of problems that a flattener creates.
	maxProblems = 20_000
	// maxCauses is the maximum number of causes of a fault that are considered, the first ones by
	// path.
	maxCauses = 50 * maxViolations
)

// flatten returns the problems behind one fault.
func (f *flattener) flatten(e *fault) []problem {
	if f.left == 0 {
		f.isShort = true
		return nil
	}
	switch e.kind {
	case allCauses:
		return f.flattenAll(e.causes)
	case noneFits:
		return f.flattenAlternatives(e)
	default:
	}

	problems := f.explain(e)
	f.left -= min(f.left, len(problems))
	return problems
}

// explain returns the problems of a fault whose only causes, if any, are faults of member names.
func (f *flattener) explain(e *fault) []problem {
	switch e.kind {
	case typeFault:
		return []problem{newTypeProblem(e, e.s.types.names(), e.n.kind.String())}
	case enumFault:
		return []problem{newFixedProblem(e, "must be one of "+formatValues(e.s.enum))}
	case constFault:
		return []problem{newFixedProblem(e, "must be "+formatValue(e.s.constant))}
	default:
	}

	if message := f.explainMembers(e); message != "" {
		return f.memberProblems(e, message)
	}
	return []problem{newProblem(e, "%s", explainValue(e))}
}

// flattenAll returns the problems of several faults.
func (f *flattener) flattenAll(faults []*fault) []problem {
	some := firstOf(faults, maxCauses, func(a, b *fault) int {
		return comparePaths(a.path, b.path)
	})
	f.isShort = f.isShort || len(some) < len(faults)

	var all []problem
	for _, e := range some {
		all = append(all, f.flatten(e)...)
	}
	return all
}

// firstOf returns the first elements in an order, at most the given number. It sorts them only if
// there are more.
func firstOf[T any](all []T, most int, compare func(a, b T) int) []T {
	if len(all) <= most {
		return all
	}

	kept := make([]T, 0, 2*most)
	shrink := func() {
		slices.SortStableFunc(kept, compare)
		kept = kept[:min(most, len(kept))]
	}
	isFull := false
	for _, one := range all {
		if isFull && compare(one, kept[most-1]) >= 0 {
			continue
		}
		if kept = append(kept, one); len(kept) == cap(kept) {
			shrink()
			isFull = true
		}
	}
	shrink()
	return kept
}

// explainMembers describes the mistake in the members that a fault names, or returns "" if the
// fault does not concern members.
func (f *flattener) explainMembers(e *fault) string {
	switch e.kind {
	case requiredFault:
		return "is missing"
	case dependentFault:
		return fmt.Sprintf("is missing, but %q needs it", clip(e.reason, 60))
	case additionalFault:
		return "is not an allowed member: remove it"
	case nameFault:
		if problems := f.flattenAll(e.causes); len(problems) > 0 {
			return "is not a valid name: " + problems[0].message
		}
		return "is not a valid name"
	default:
		return ""
	}
}

// memberProblems returns the same problem for several members of an object.
func (f *flattener) memberProblems(e *fault, message string) []problem {
	some := firstOf(e.names, maxCauses, compareSteps)
	f.isShort = f.isShort || len(some) < len(e.names)

	problems := make([]problem, len(some))
	for i, name := range some {
		problems[i] = problem{path: append(slices.Clone(e.path), name), message: message}
	}
	return problems
}

// explainValue describes the mistake in a value as a whole.
func explainValue(e *fault) string {
	s, got := e.s, formatValue(e.n)
	switch e.kind {
	case falseFault:
		return "must not be here"
	case formatFault:
		if s.format == regexFormat {
			_, err := compilePattern(e.n.text)
			return fmt.Sprint(err)
		}
		return fmt.Sprintf("must be a valid %s, is %s", s.format, got)

	case patternFault:
		return fmt.Sprintf("must match the pattern %s, is %s", s.pattern, got)
	case uniqueItemsFault:
		return fmt.Sprintf("the items %d and %d are the same, but each item may appear only once",
			e.pair[0], e.pair[1])
	case notFault:
		return "must not be what the schema excludes by \"not\""
	case twoFit:
		return fmt.Sprintf("fits more than one alternative (%d and %d), must fit exactly one",
			e.pair[0]+1, e.pair[1]+1)
	default:
	}

	if text := explainCount(e); text != "" {
		return text
	}
	return explainBound(e)
}

// explainCount describes which bound on a count a value violates, or returns "" for a different
// fault.
func explainCount(e *fault) string {
	s, n := e.s, e.n
	explain := func(word string, want, got int, what string) string {
		return fmt.Sprintf("must have %s %d %s, has %d", word, want, what, got)
	}
	switch e.kind {
	case minItemsFault:
		return explain("at least", *s.minItems, len(n.kids), "items")
	case maxItemsFault:
		return explain("at most", *s.maxItems, len(n.kids), "items")
	case minContainsFault:
		return explain("at least", e.pair[0], e.pair[1], "items that fit \"contains\"")
	case maxContainsFault:
		return explain("at most", e.pair[0], e.pair[1], "items that fit \"contains\"")
	case minLengthFault:
		return explain("at least", *s.minLength, utf8.RuneCountInString(n.text), "characters")
	case maxLengthFault:
		return explain("at most", *s.maxLength, utf8.RuneCountInString(n.text), "characters")
	case minPropertiesFault:
		return explain("at least", *s.minProperties, len(n.keys), "members")
	case maxPropertiesFault:
		return explain("at most", *s.maxProperties, len(n.keys), "members")
	default:
		return ""
	}
}

// explainBound describes which bound a number violates.
func explainBound(e *fault) string {
	explain := func(word string, bound *big.Rat) string {
		return "must be " + word + " " + formatBound(bound) + ", is " + formatBound(e.n.rational())
	}
	switch e.kind {
	case minimumFault:
		return explain("at least", e.s.minimum)
	case maximumFault:
		return explain("at most", e.s.maximum)
	case exclusiveMinimumFault:
		return explain("greater than", e.s.exclusiveMinimum)
	case exclusiveMaximumFault:
		return explain("less than", e.s.exclusiveMaximum)
	case multipleOfFault:
		return explain("a multiple of", e.s.multipleOf)
	default:
		return "must meet the schema"
	}
}

// alternatives collects the alternatives that a value does not fit.
type alternatives struct {
	depth int // steps from the root to the value
	wants []string
	got   string      // the type of the value
	hints []string    // why alternatives of the right type do not fit
	meant [][]problem // the problems of alternatives that may have been meant
}

// flattenAlternatives returns the problems of a value that fits none of several schemas. An
// alternative with a different type or tag was not meant. If a single alternative remains, the
// function returns its problems.
func (f *flattener) flattenAlternatives(e *fault) []problem {
	a := alternatives{depth: len(e.path)}
	for _, cause := range e.causes {
		if branch := f.flatten(cause); len(branch) > 0 {
			a.add(branch)
		}
	}

	switch {
	case len(a.meant) == 1:
		return a.meant[0]
	case len(a.hints) == 0 && len(a.wants) > 0:
		slices.Sort(a.wants)
		return []problem{newTypeProblem(e, slices.Compact(a.wants), a.got)}
	case len(a.hints) == 1:
		p := newProblem(e, "%s", a.addTypes(a.hints[0]))
		p.isFixed = true
		return []problem{p}
	}

	hints := clip(strings.Join(a.hints, "; or "), 240)
	return []problem{newProblem(e, "fits none of the alternatives: %s", hints)}
}

// add sorts the problems of one alternative into a's fields.
func (a *alternatives) add(branch []problem) {
	first := branch[0]
	isOtherType := len(branch) == 1 && first.want != nil && len(first.path) == a.depth
	if isOtherType {
		a.wants, a.got = append(a.wants, first.want...), first.got
		return
	}

	a.hints = append(a.hints, a.hint(branch))
	hasOtherTag := slices.ContainsFunc(branch, func(p problem) bool {
		return p.isFixed && len(p.path) <= a.depth+1
	})
	if !hasOtherTag {
		a.meant = append(a.meant, branch)
	}
}

// hint returns the reason why an alternative was not meant, or otherwise its first problem. The
// path in the hint begins at the value.
func (a *alternatives) hint(branch []problem) string {
	first := branch[0]
	if i := slices.IndexFunc(branch, func(p problem) bool { return p.isFixed }); i >= 0 {
		first = branch[i]
	}
	if len(first.path) <= a.depth {
		return first.message
	}
	return strings.TrimPrefix(formatPath(first.path[a.depth:]), "$.") + " " + first.message
}

// addTypes adds to a hint the types that other alternatives require.
func (a *alternatives) addTypes(hint string) string {
	if len(a.wants) == 0 {
		return hint
	}
	return hint + " (or " + strings.Join(a.wants, " or ") + ")"
}
