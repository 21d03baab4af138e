package format

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NotInRDF returns notes about the parts of a property graph that RDF cannot represent, and about
// the names that it changes.
func NotInRDF(from Source) (notes []string, err error) {
	ofEdges, nested, renamed := names{}, names{}, names{}
	err = from.Nodes(func(n Node) error {
		for _, label := range n.Labels {
			if isClassRenamed(label) {
				renamed[label]++
			}
		}
		for key, value := range n.Properties {
			if isNested(value) {
				nested[key]++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	err = from.Edges(func(e Edge) error {
		if isShouted(e.Type) {
			renamed[e.Type]++
		}
		if e.ID != "" {
			ofEdges["id"]++
		}
		for key := range e.Properties {
			ofEdges[key]++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	for _, loss := range []struct {
		found names
		what  string
	}{
		{ofEdges, "properties of relationships are left out, because RDF has none"},
		{nested, "maps and nested lists are left out, because RDF has none"},
		{renamed, "labels and types are named as RDF names them, such as RunTrace and hasEditFor"},
	} {
		if len(loss.found) > 0 {
			notes = append(notes, loss.what+": "+loss.found.list())
		}
	}
	return notes, nil
}

// names counts occurrences by name.
type names map[string]int

// list returns the most frequent names.
func (n names) list() string {
	const most = 5
	all := slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		return cmp.Or(cmp.Compare(n[b], n[a]), strings.Compare(a, b))
	})

	var shown []string
	for _, name := range all[:min(most, len(all))] {
		shown = append(shown, fmt.Sprintf("%d × %q", n[name], cutName(name)))
	}
	if more := len(all) - most; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more names", more))
	}
	return strings.Join(shown, ", ")
}

// isClassRenamed reports whether a label differs from the name of its class: see class_name in
// graph/engine/src/names.rs.
func isClassRenamed(label string) bool {
	first, _ := utf8.DecodeRuneInString(label)
	return strings.ContainsAny(label, "_- ") || unicode.ToUpper(first) != first
}

// isShouted reports whether a type has upper-case but no lower-case letters: property_name in
// graph/engine/src/names.rs names the property of such a type differently.
func isShouted(name string) bool {
	return strings.ContainsFunc(name, unicode.IsUpper) && !strings.ContainsFunc(name, unicode.IsLower)
}

// isNested reports whether a value is not a literal or a list of literals.
func isNested(value any) bool {
	list, isList := value.([]any)
	if !isList {
		_, isMap := value.(map[string]any)
		return isMap
	}
	return slices.ContainsFunc(list, func(element any) bool {
		_, isList := element.([]any)
		return isList || isNested(element)
	})
}
