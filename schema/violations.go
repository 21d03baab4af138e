package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Violation is one mistake in a value.
type Violation struct {
	// Path is the position, from the root "$": $.findings[2].title
	Path string
	// Message describes the mistake in words for a model.
	Message string
}

// String returns "path: message".
func (v Violation) String() string { return v.Path + ": " + v.Message }

const (
	// maxViolations bounds the violations that one check reports. If there are more, the last one
	// states how many.
	maxViolations = 20
	maxPath       = 200 // bytes
	maxMessage    = 300 // bytes
)

// listViolations returns the violations behind a fault, in order and at most maxViolations.
func listViolations(found *fault) []Violation {
	f := flattener{left: maxProblems}
	problems := f.flatten(found)
	slices.SortStableFunc(problems, compareProblems)
	problems = slices.CompactFunc(problems, func(a, b problem) bool {
		return compareProblems(a, b) == 0
	})
	if len(problems) > maxViolations || f.isShort {
		shown := min(len(problems), maxViolations-1)
		last := problem{message: fmt.Sprintf("and %d more violations", len(problems)-shown)}
		if f.isShort {
			last.message = fmt.Sprintf("and more than %d more violations", len(problems)-shown)
		}
		problems = append(problems[:shown], last)
	}

	violations := make([]Violation, len(problems))
	for i, p := range problems {
		violations[i] = Violation{Path: formatPath(p.path), Message: clip(p.message, maxMessage)}
	}
	return violations
}

// compareProblems orders problems by path, with items by index, and then by message.
func compareProblems(a, b problem) int {
	return cmp.Or(comparePaths(a.path, b.path), strings.Compare(a.message, b.message))
}

// comparePaths orders paths; a path comes before its extensions.
func comparePaths(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if order := compareSteps(a[i], b[i]); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

// compareSteps orders two steps of a path.
func compareSteps(a, b string) int {
	if x, err := strconv.Atoi(a); err == nil {
		if y, err := strconv.Atoi(b); err == nil && x != y {
			return cmp.Compare(x, y)
		}
	}
	return strings.Compare(a, b)
}

// formatPath formats a path from the root: $.a[3]["odd key"].
func formatPath(path []string) string {
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

// isIdentifier reports whether a name can be written without quotes.
func isIdentifier(s string) bool {
	for i, c := range s {
		if c != '_' && c != '-' && !isLetterOrDigit(c) {
			return false
		}
		if i == 0 && (c == '-' || '0' <= c && c <= '9') {
			return false
		}
	}
	return s != "" && len(s) <= 100
}

// isLetterOrDigit reports whether a character can be part of a name.
func isLetterOrDigit(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c > 0x7f
}

// formatValues formats several values as a list.
func formatValues(values []*node) string {
	const limit = 12
	var parts []string
	for i, value := range values {
		if i == limit {
			parts = append(parts, fmt.Sprintf("… (%d in all)", len(values)))
			break
		}
		parts = append(parts, formatValue(value))
	}
	return strings.Join(parts, ", ")
}

// formatValue formats a value for a message: short, on one line.
func formatValue(n *node) string {
	switch n.kind {
	case textKind:
		return strconv.Quote(clip(n.text, 60))
	case objectKind:
		return "an object"
	case arrayKind:
		return "an array"
	default:
		return clip(n.text, 60)
	}
}
