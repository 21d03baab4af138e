package correct

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/schema"
)

// Bounds of the walk through a schema and a value, which are both untrusted.
const (
	mostParts   = 10_000
	deepestPart = 40
)

// scoreOf returns the fraction of the parts of a value that are correct. Its parts are the value
// itself, its members and items, and the members that the schema requires. A missing member is
// wrong, as are all parts that the schema requires of it.
func scoreOf(contract *schema.Contract, value any, violations []schema.Violation) float64 {
	s := scorer{wrong: map[string]int{}}
	if json.Unmarshal(contract.JSONSchema(), &s.root) != nil {
		return 0
	}

	more := 0
	for _, v := range violations {
		if _, err := fmt.Sscanf(v.Message, "and %d more violations", &more); err != nil {
			s.wrong[v.Path]++
		}
	}
	s.walk(s.root, value, "$", 0)
	for _, unmatched := range s.wrong {
		s.bad += unmatched
	}

	share := float64(s.parts-s.bad-more) / float64(s.parts)
	return max(0, math.Round(share*1e4)/1e4)
}

// admits reports whether the root of a schema allows the type of a value.
func admits(contract *schema.Contract, value any) bool {
	s := scorer{}
	if json.Unmarshal(contract.JSONSchema(), &s.root) != nil {
		return false
	}
	return s.admits(s.root, value, 0)
}

// scorer counts the parts of a value and the wrong ones among them.
type scorer struct {
	root       any
	wrong      map[string]int // violations by path, except those that belong to a part
	parts, bad int
}

// walk counts a value and everything below it, according to a schema.
func (s *scorer) walk(here, value any, path string, depth int) {
	s.parts++
	if s.wrong[path] > 0 {
		s.bad++
		delete(s.wrong, path)
	}
	if s.parts > mostParts || depth > deepestPart {
		return
	}

	object := s.resolve(here, 0)
	members, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		s.walk(s.member(object, name), members[name], memberPath(path, name), depth+1)
	}
	required, _ := object["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			if _, has := members[name]; !has {
				delete(s.wrong, memberPath(path, name))
				s.miss(s.member(object, name), depth+1)
			}
		}
	}

	items, _ := value.([]any)
	for i, item := range items {
		s.walk(object["items"], item, fmt.Sprintf("%s[%d]", path, i), depth+1)
	}
}

// miss counts a missing value together with all its required parts.
func (s *scorer) miss(here any, depth int) {
	s.parts++
	s.bad++
	if s.parts > mostParts || depth > deepestPart {
		return
	}

	object := s.resolve(here, 0)
	required, _ := object["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			s.miss(s.member(object, name), depth+1)
		}
	}
}

// member returns the schema of a member, or nil.
func (s *scorer) member(object map[string]any, name string) any {
	properties, _ := object["properties"].(map[string]any)
	return properties[name]
}

// resolve returns a schema as an object, following references within its own document.
func (s *scorer) resolve(here any, depth int) map[string]any {
	object, _ := here.(map[string]any)
	ref, _ := object["$ref"].(string)
	rest, local := strings.CutPrefix(ref, "#")
	if !local || depth > deepestPart {
		return object
	}

	target := s.root
	for _, step := range strings.Split(strings.Trim(rest, "/"), "/") {
		if parent, ok := target.(map[string]any); ok && step != "" {
			target = parent[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		}
	}
	return s.resolve(target, depth+1)
}

// admits reports whether a schema allows the type of a value.
func (s *scorer) admits(here, value any, depth int) bool {
	object := s.resolve(here, 0)
	if depth > deepestPart {
		return true
	}
	for _, group := range []string{"anyOf", "oneOf"} {
		branches, _ := object[group].([]any)
		if len(branches) > 0 && !slices.ContainsFunc(branches, func(branch any) bool {
			return s.admits(branch, value, depth+1)
		}) {
			return false
		}
	}

	switch types := object["type"].(type) {
	case string:
		return isType(types, value)
	case []any:
		return slices.ContainsFunc(types, func(t any) bool {
			name, _ := t.(string)
			return isType(name, value)
		})
	}
	return true
}

// isType reports whether a value has a type of JSON Schema. Every number is accepted as an integer,
// and a string as any type to which it can be coerced.
func isType(name string, value any) bool {
	switch value.(type) {
	case nil:
		return name == "null"
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	}
	return name != "null" && name != "object" && name != "array"
}

// plainName matches a name that needs no quotes in paths.
var plainName = lazyregexp.New(`^[A-Za-z_\x{80}-\x{10FFFF}][-\w\x{80}-\x{10FFFF}]*$`)

// memberPath returns the path of a member in the form that violations use.
func memberPath(path, name string) string {
	if plainName.MatchString(name) {
		return path + "." + name
	}
	return path + "[" + strconv.Quote(name) + "]"
}
