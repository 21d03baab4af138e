package yamlfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/spelling"
)

// The decoder's error messages, which name Go types.
var (
	unknownKey = lazyregexp.New(`(?s)^(line \d+: )field (.+) not found in type .+$`)
	wrongKind  = lazyregexp.New("(?s)^(line \\d+: )cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.+)$")
)

// explain describes a mistake in a file in terms familiar to its author.
func explain(err error, into any) error {
	mistakes, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}

	lines := make([]string, len(mistakes.Errors))
	for i, line := range mistakes.Errors {
		lines[i] = explainLine(line, into)
	}
	return errors.New(strings.Join(lines, "; "))
}

func explainLine(line string, into any) string {
	if m := unknownKey.FindStringSubmatch(line); m != nil {
		known := listKeys(reflect.TypeOf(into), map[reflect.Type]bool{})
		said := fmt.Sprintf("%sunknown key %q", m[1], m[2])
		if meant := spelling.Nearest(m[2], known); meant != "" {
			said += fmt.Sprintf(", did you mean %q?", meant)
		}
		return said
	}
	m := wrongKind.FindStringSubmatch(line)
	if m == nil {
		return line
	}

	given := given[m[2]]
	if given == "" {
		given = fmt.Sprintf("%q", m[3])
	}
	return fmt.Sprintf("%sgive %s, not %s", m[1], nameType(m[4]), given)
}

// given describes values that cannot be quoted.
var given = map[string]string{"seq": "a list", "map": "an object", "null": "null"}

// nameType returns the YAML term for a Go type.
func nameType(name string) string {
	switch {
	case name == "string":
		return "a text"
	case name == "bool":
		return "true or false"
	case name == "time.Duration":
		return "a time such as 500ms or 2s"
	case strings.HasPrefix(name, "[]"):
		return "a list"
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"):
		return "a whole number"
	case strings.HasPrefix(name, "float"):
		return "a number"
	}
	return "an object"
}

// listKeys returns the keys of a type and of the types it contains.
func listKeys(t reflect.Type, seen map[reflect.Type]bool) (keys []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return listKeys(t.Elem(), seen)
	case reflect.Struct:
	default:
		return nil
	}
	if seen[t] {
		return nil
	}
	seen[t] = true

	for i := range t.NumField() {
		field := t.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key != "" && key != "-" {
			keys = append(keys, key)
		}
		if key != "-" && (field.IsExported() || field.Anonymous) {
			keys = append(keys, listKeys(field.Type, seen)...)
		}
	}
	return keys
}
