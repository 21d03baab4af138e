package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	fault "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Violation is one thing that is wrong with a value.
type Violation struct {
	// Path is where, from the root "$": $.findings[2].title
	Path string
	// Message is what, in words for a model.
	Message string
}

// String returns "path: message".
func (v Violation) String() string { return v.Path + ": " + v.Message }

const (
	// maxViolations bounds what one check reports; the last says how many more
	// there are.
	maxViolations = 20
	maxPath       = 200
	maxMessage    = 300
)

// problem is a violation that still has its parts.
type problem struct {
	path    []string
	message string
	got     string   // of a wrong type: what it is
	want    []string // and what it should be
	fixed   bool     // a wrong enum or const
}

// violations lists what the library found.
func violations(found *jsonschema.ValidationError) []Violation {
	problems := flatten(found)
	slices.SortStableFunc(problems, compareProblems)
	problems = slices.CompactFunc(problems, func(a, b problem) bool { return compareProblems(a, b) == 0 })
	if len(problems) > maxViolations {
		more := len(problems) - maxViolations + 1
		problems = append(problems[:maxViolations-1], problem{message: fmt.Sprintf("and %d more violations", more)})
	}
	violations := make([]Violation, len(problems))
	for i, p := range problems {
		violations[i] = Violation{Path: pathText(p.path), Message: clip(p.message, maxMessage)}
	}
	return violations
}

// compareProblems orders by place, items by their number, and then by message.
func compareProblems(a, b problem) int {
	for i := range min(len(a.path), len(b.path)) {
		if order := compareStep(a.path[i], b.path[i]); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(len(a.path), len(b.path)), strings.Compare(a.message, b.message))
}

func compareStep(a, b string) int {
	if x, err := strconv.Atoi(a); err == nil {
		if y, err := strconv.Atoi(b); err == nil && x != y {
			return cmp.Compare(x, y)
		}
	}
	return strings.Compare(a, b)
}

// flatten returns the problems below one error of the library.
func flatten(e *jsonschema.ValidationError) []problem {
	at := func(format string, args ...any) []problem {
		return []problem{{path: e.InstanceLocation, message: fmt.Sprintf(format, args...)}}
	}
	switch k := e.ErrorKind.(type) {
	case *fault.Schema, *fault.Group, *fault.Reference, *fault.AllOf:
		var all []problem
		for _, cause := range e.Causes {
			all = append(all, flatten(cause)...)
		}
		return all
	case *fault.AnyOf:
		return alternatives(e)
	case *fault.OneOf:
		if len(k.Subschemas) > 1 {
			return at("fits more than one alternative (%d and %d), must fit exactly one", k.Subschemas[0]+1, k.Subschemas[1]+1)
		}
		return alternatives(e)
	case *fault.Type:
		return []problem{{path: e.InstanceLocation, message: wrongType(k.Want, k.Got), got: k.Got, want: k.Want}}
	case *fault.Enum:
		return []problem{{path: e.InstanceLocation, message: "must be one of " + listed(k.Want) + ", is " + show(k.Got), fixed: true}}
	case *fault.Const:
		return []problem{{path: e.InstanceLocation, message: "must be " + show(k.Want) + ", is " + show(k.Got), fixed: true}}
	case *fault.Required:
		return eachMember(e, k.Missing, "is missing")
	case *fault.DependentRequired:
		return eachMember(e, k.Missing, fmt.Sprintf("is missing, %q needs it", clip(k.Prop, 60)))
	case *fault.Dependency:
		return eachMember(e, k.Missing, fmt.Sprintf("is missing, %q needs it", clip(k.Prop, 60)))
	case *fault.AdditionalProperties:
		return eachMember(e, k.Properties, "is not a member that is known here: leave it out")
	case *fault.PropertyNames:
		why := "is not a valid name"
		if problems := flattenAll(e.Causes); len(problems) > 0 {
			why += ": " + problems[0].message
		}
		return eachMember(e, []string{k.Property}, why)
	case *fault.FalseSchema:
		return at("must not be here")
	case *fault.Format:
		if k.Want == "regex" {
			return at("%v", k.Err)
		}
		return at("must be a valid %s, is %s", k.Want, show(k.Got))
	case *fault.Pattern:
		return at("must match the pattern %s, is %s", k.Want, show(k.Got))
	default:
		return at("%s", limit(e.ErrorKind))
	}
}

// limit says which bound a value breaks.
func limit(k jsonschema.ErrorKind) string {
	count := func(word string, want, got int, what string) string {
		return fmt.Sprintf("must have %s %d %s, has %d", word, want, what, got)
	}
	switch k := k.(type) {
	case *fault.MinItems:
		return count("at least", k.Want, k.Got, "items")
	case *fault.MaxItems:
		return count("at most", k.Want, k.Got, "items")
	case *fault.MinLength:
		return count("at least", k.Want, k.Got, "characters")
	case *fault.MaxLength:
		return count("at most", k.Want, k.Got, "characters")
	case *fault.MinProperties:
		return count("at least", k.Want, k.Got, "members")
	case *fault.MaxProperties:
		return count("at most", k.Want, k.Got, "members")
	case *fault.Minimum:
		return "must be at least " + decimal(k.Want) + ", is " + decimal(k.Got)
	case *fault.Maximum:
		return "must be at most " + decimal(k.Want) + ", is " + decimal(k.Got)
	case *fault.ExclusiveMinimum:
		return "must be greater than " + decimal(k.Want) + ", is " + decimal(k.Got)
	case *fault.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want) + ", is " + decimal(k.Got)
	case *fault.MultipleOf:
		return "must be a multiple of " + decimal(k.Want) + ", is " + decimal(k.Got)
	case *fault.UniqueItems:
		return fmt.Sprintf("the items %d and %d are the same, each may be there once", k.Duplicates[0], k.Duplicates[1])
	case *fault.Not:
		return "must not be what the schema excludes by \"not\""
	}
	return k.LocalizedString(english)
}

var english = message.NewPrinter(language.English)

func flattenAll(errors []*jsonschema.ValidationError) []problem {
	var all []problem
	for _, e := range errors {
		all = append(all, flatten(e)...)
	}
	return all
}

func eachMember(e *jsonschema.ValidationError, names []string, message string) []problem {
	problems := make([]problem, len(names))
	for i, name := range names {
		problems[i] = problem{path: append(slices.Clone(e.InstanceLocation), name), message: message}
	}
	return problems
}

// alternatives returns the problems of a value that fits none of several
// schemas. Alternatives of another type, or with another tag, were not meant;
// if a single one is left, its problems are shown.
func alternatives(e *jsonschema.ValidationError) []problem {
	var meant [][]problem
	var wants, hints []string
	got := ""
	for _, cause := range e.Causes {
		branch := flatten(cause)
		if len(branch) == 0 {
			continue
		}
		if first := branch[0]; len(branch) == 1 && first.want != nil && len(first.path) == len(e.InstanceLocation) {
			wants, got = append(wants, first.want...), first.got
			continue
		}
		hints = append(hints, hint(branch, len(e.InstanceLocation)))
		if !slices.ContainsFunc(branch, func(p problem) bool { return p.fixed && len(p.path) <= len(e.InstanceLocation)+1 }) {
			meant = append(meant, branch)
		}
	}
	switch {
	case len(meant) == 1:
		return meant[0]
	case len(hints) == 0 && len(wants) > 0:
		slices.Sort(wants)
		wants = slices.Compact(wants)
		return []problem{{path: e.InstanceLocation, message: wrongType(wants, got), got: got, want: wants}}
	case len(hints) == 1:
		return []problem{{path: e.InstanceLocation, message: withTypes(hints[0], wants), fixed: true}}
	}
	return []problem{{path: e.InstanceLocation, message: "fits none of the alternatives: " + clip(strings.Join(hints, "; or "), 240)}}
}

// hint says why an alternative was not meant, or what is wrong first. The place
// is seen from depth steps below the root.
func hint(branch []problem, depth int) string {
	first := branch[0]
	if i := slices.IndexFunc(branch, func(p problem) bool { return p.fixed }); i >= 0 {
		first = branch[i]
	}
	if len(first.path) <= depth {
		return first.message
	}
	return strings.TrimPrefix(pathText(first.path[depth:]), "$.") + " " + first.message
}

func withTypes(hint string, wants []string) string {
	if len(wants) == 0 {
		return hint
	}
	return hint + " (or " + strings.Join(wants, " or ") + ")"
}

func wrongType(want []string, got string) string {
	return fmt.Sprintf("must be %s, is %s", strings.Join(want, " or "), got)
}

// listed shows values in a row.
func listed(values []any) string {
	var parts []string
	for i, value := range values {
		if i == 12 {
			parts = append(parts, fmt.Sprintf("… (%d in all)", len(values)))
			break
		}
		parts = append(parts, show(value))
	}
	return strings.Join(parts, ", ")
}

// show writes a value in a message: short, on one line.
func show(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(clip(v, 60))
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	}
	return clip(fmt.Sprint(value), 60)
}

// pathText writes a path from the root: $.a[3]["odd key"].
func pathText(path []string) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, step := range path {
		switch {
		case step != "" && strings.Trim(step, "0123456789") == "":
			b.WriteString("[" + step + "]")
		case isIdentifier(step):
			b.WriteString("." + step)
		default:
			b.WriteString("[" + strconv.Quote(clip(step, 60)) + "]")
		}
		if b.Len() > maxPath {
			return clip(b.String(), maxPath)
		}
	}
	return b.String()
}

func isIdentifier(s string) bool {
	for i, c := range s {
		if c != '_' && c != '-' && !isLetterOrDigit(c) || i == 0 && (c == '-' || '0' <= c && c <= '9') {
			return false
		}
	}
	return s != "" && len(s) <= 100
}

func isLetterOrDigit(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c > 0x7f
}
