package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	fault "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// problem is a violation in parts.
type problem struct {
	path    []string
	message string
	got     string   // the type of the value, if its type is wrong
	want    []string // the types that it should have
	isFixed bool     // the value differs from a const or an enum
}

// newProblem returns a problem of a value as a whole.
func newProblem(e *jsonschema.ValidationError, format string, args ...any) problem {
	return problem{path: e.InstanceLocation, message: fmt.Sprintf(format, args...)}
}

// newTypeProblem returns the problem of a value of the wrong type.
func newTypeProblem(e *jsonschema.ValidationError, want []string, got string) problem {
	p := newProblem(e, "must be %s, is %s", strings.Join(want, " or "), got)
	p.got, p.want = got, want
	return p
}

// newFixedProblem returns the problem of a value that differs from a const or an enum.
func newFixedProblem(e *jsonschema.ValidationError, want string, got any) problem {
	p := newProblem(e, "%s, is %s", want, formatValue(got))
	p.isFixed = true
	return p
}

// flattener makes problems of the library's errors. There may be millions, of which nobody reads
// more than the first.
type flattener struct {
	left    int  // problems that may still be made
	isShort bool // errors were left out
}

const (
	// maxProblems is how many problems a flattener makes.
	maxProblems = 20_000
	// maxCauses is how many causes of an error count, the first ones by their paths.
	maxCauses = 50 * maxViolations
)

// flatten returns the problems that one error of the library stands for.
func (f *flattener) flatten(e *jsonschema.ValidationError) []problem {
	if f.left == 0 {
		f.isShort = true
		return nil
	}
	switch k := e.ErrorKind.(type) {
	case *fault.Schema, *fault.Group, *fault.Reference, *fault.AllOf:
		return f.flattenAll(e.Causes)
	case *fault.AnyOf:
		return f.flattenAlternatives(e)
	case *fault.OneOf:
		if len(k.Subschemas) > 1 {
			return []problem{newProblem(e,
				"fits more than one alternative (%d and %d), must fit exactly one",
				k.Subschemas[0]+1, k.Subschemas[1]+1)}
		}
		return f.flattenAlternatives(e)
	}

	problems := f.explain(e)
	f.left -= min(f.left, len(problems))
	return problems
}

// explain returns the problems of an error that has no others below it, or only those of names.
func (f *flattener) explain(e *jsonschema.ValidationError) []problem {
	switch k := e.ErrorKind.(type) {
	case *fault.Type:
		return []problem{newTypeProblem(e, k.Want, k.Got)}
	case *fault.Enum:
		return []problem{newFixedProblem(e, "must be one of "+formatValues(k.Want), k.Got)}
	case *fault.Const:
		return []problem{newFixedProblem(e, "must be "+formatValue(k.Want), k.Got)}
	}

	if names, message := f.explainMembers(e); message != "" {
		return f.memberProblems(e, names, message)
	}
	return []problem{newProblem(e, "%s", explainValue(e.ErrorKind))}
}

// flattenAll returns the problems of several errors.
func (f *flattener) flattenAll(errors []*jsonschema.ValidationError) []problem {
	some := firstOf(errors, maxCauses, func(a, b *jsonschema.ValidationError) int {
		return comparePaths(a.InstanceLocation, b.InstanceLocation)
	})
	f.isShort = f.isShort || len(some) < len(errors)

	var all []problem
	for _, e := range some {
		all = append(all, f.flatten(e)...)
	}
	return all
}

// firstOf returns the first elements in an order, so many at most, sorted if there are more.
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

// explainMembers returns what is wrong with members of an object, and with which ones. The
// message is empty if the error is not about members.
func (f *flattener) explainMembers(e *jsonschema.ValidationError) (names []string, message string) {
	switch k := e.ErrorKind.(type) {
	case *fault.Required:
		return k.Missing, "is missing"
	case *fault.DependentRequired:
		return k.Missing, fmt.Sprintf("is missing, but %q needs it", clip(k.Prop, 60))
	case *fault.Dependency:
		return k.Missing, fmt.Sprintf("is missing, but %q needs it", clip(k.Prop, 60))
	case *fault.AdditionalProperties:
		return k.Properties, "is not an allowed member: remove it"
	case *fault.PropertyNames:
		message = "is not a valid name"
		if problems := f.flattenAll(e.Causes); len(problems) > 0 {
			message += ": " + problems[0].message
		}
		return []string{k.Property}, message
	}
	return nil, ""
}

// memberProblems returns the same problem for several members of an object.
func (f *flattener) memberProblems(
	e *jsonschema.ValidationError, names []string, message string,
) []problem {
	some := firstOf(names, maxCauses, compareSteps)
	f.isShort = f.isShort || len(some) < len(names)

	problems := make([]problem, len(some))
	for i, name := range some {
		problems[i] = problem{
			path:    append(slices.Clone(e.InstanceLocation), name),
			message: message,
		}
	}
	return problems
}

// explainValue returns what is wrong with a value as a whole.
func explainValue(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *fault.FalseSchema:
		return "must not be here"
	case *fault.Format:
		if k.Want == "regex" {
			return fmt.Sprint(k.Err)
		}
		return fmt.Sprintf("must be a valid %s, is %s", k.Want, formatValue(k.Got))

	case *fault.Pattern:
		return fmt.Sprintf("must match the pattern %s, is %s", k.Want, formatValue(k.Got))
	case *fault.UniqueItems:
		return fmt.Sprintf("the items %d and %d are the same, but each item may appear only once",
			k.Duplicates[0], k.Duplicates[1])
	case *fault.Not:
		return "must not be what the schema excludes by \"not\""
	}

	if text := explainCount(k); text != "" {
		return text
	}
	if text := explainBound(k); text != "" {
		return text
	}
	return k.LocalizedString(english)
}

var english = message.NewPrinter(language.English)

// explainCount returns which bound on a count a value breaks, empty if it is another.
func explainCount(k jsonschema.ErrorKind) string {
	explain := func(word string, want, got int, what string) string {
		return fmt.Sprintf("must have %s %d %s, has %d", word, want, what, got)
	}
	switch k := k.(type) {
	case *fault.MinItems:
		return explain("at least", k.Want, k.Got, "items")
	case *fault.MaxItems:
		return explain("at most", k.Want, k.Got, "items")
	case *fault.MinLength:
		return explain("at least", k.Want, k.Got, "characters")
	case *fault.MaxLength:
		return explain("at most", k.Want, k.Got, "characters")
	case *fault.MinProperties:
		return explain("at least", k.Want, k.Got, "members")
	case *fault.MaxProperties:
		return explain("at most", k.Want, k.Got, "members")
	}
	return ""
}

// explainBound returns which bound a number breaks, empty if it is another.
func explainBound(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *fault.Minimum:
		return "must be at least " + formatBound(k.Want) + ", is " + formatBound(k.Got)
	case *fault.Maximum:
		return "must be at most " + formatBound(k.Want) + ", is " + formatBound(k.Got)
	case *fault.ExclusiveMinimum:
		return "must be greater than " + formatBound(k.Want) + ", is " + formatBound(k.Got)
	case *fault.ExclusiveMaximum:
		return "must be less than " + formatBound(k.Want) + ", is " + formatBound(k.Got)
	case *fault.MultipleOf:
		return "must be a multiple of " + formatBound(k.Want) + ", is " + formatBound(k.Got)
	}
	return ""
}

// alternatives sorts the alternatives that a value does not fit.
type alternatives struct {
	depth int // steps from the root to the value
	wants []string
	got   string      // the type of the value, if an alternative wants another
	hints []string    // why an alternative of the right type does not fit
	meant [][]problem // the problems of alternatives that may have been meant
}

// flattenAlternatives returns the problems of a value that fits none of several schemas.
// An alternative of another type, or with another tag, was not meant. If a single one is
// left, its problems are returned.
func (f *flattener) flattenAlternatives(e *jsonschema.ValidationError) []problem {
	a := alternatives{depth: len(e.InstanceLocation)}
	for _, cause := range e.Causes {
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

// add sorts in the problems of one alternative.
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

// hint returns why an alternative was not meant, or what is wrong first. The path in it
// begins at the value.
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

// addTypes adds to a hint the types that other alternatives want.
func (a *alternatives) addTypes(hint string) string {
	if len(a.wants) == 0 {
		return hint
	}
	return hint + " (or " + strings.Join(a.wants, " or ") + ")"
}
