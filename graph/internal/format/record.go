package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a node or an edge in JSON.
//
// The keys are those of Neo4j's export: a node has "type": "node", "labels" and "properties"; an
// edge has "type": "relationship", "label", "start" and "end". The keys of plain files are
// accepted, too: a node has "labels" or "type", an edge "from" or "source", "to" or "target", and
// "type". All other keys are properties.
type object map[string]any

var (
	fromKeys = []string{"from", "source", "start"}
	toKeys   = []string{"to", "target", "end"}
	typeKeys = []string{"type", "label", "relation", "relationship"}
)

// parseObject decodes one record.
func parseObject(text []byte) (object, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("the line %w", errNotUTF8)
	}
	if isDeeper(text, maxDepth) {
		return nil, fmt.Errorf("it has more than %d levels of lists and objects", maxDepth)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '{' {
		return nil, errors.New("expected an object, as in " + exampleLine)
	}

	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var o object
	if err := dec.Decode(&o); err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the object: write one object per line")
	}

	for key, value := range o {
		value, err := convertNumbers(value)
		if err != nil {
			return nil, fmt.Errorf("the value of %q: %w", key, err)
		}
		o[key] = value
	}

	return o, nil
}

const exampleLine = `{"id": "a", "labels": ["Person"]} or {"from": "a", "to": "b", "type": "KNOWS"}`

// isDeeper reports whether brackets are nested deeper than the given levels. It examines only the
// bytes, so that no decoder has to build the value first.
func isDeeper(text []byte, levels int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > levels {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}

	return false
}

// convertNumbers converts the numbers in a JSON value to int64 and float64.
func convertNumbers(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		return parseNumber(v.String())
	case []any:
		for i, element := range v {
			element, err := convertNumbers(element)
			if err != nil {
				return nil, err
			}
			v[i] = element
		}
	case map[string]any:
		for key, element := range v {
			element, err := convertNumbers(element)
			if err != nil {
				return nil, err
			}
			v[key] = element
		}
	}

	return value, nil
}

func parseNumber(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s does not fit in 64 bits: write it as a text", cutNumber(text))
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s does not fit in 64 bits: write it as a text", cutNumber(text))
	}

	return f, nil
}

// cutNumber shortens a number for an error.
func cutNumber(text string) string {
	if len(text) > 30 {
		return text[:30] + "…"
	}
	return text
}

// isEdge reports whether a record is an edge. A "start" alone may be a property, such as
// the time at which an event begins.
func (o object) isEdge() bool {
	if kind := o["type"]; kind == "node" || kind == "relationship" {
		return kind == "relationship"
	}
	has := func(keys []string) bool {
		_, nested := o[keys[2]].(map[string]any)
		_, first := o[keys[0]]
		_, second := o[keys[1]]
		return nested || first || second
	}

	return has(fromKeys) && has(toKeys)
}

// emit passes a record on as a node or an edge.
func (r *reading) emit(o object) error {
	if o.isEdge() {
		return r.emitEdge(o)
	}
	return r.emitNode(o)
}

func (r *reading) emitNode(o object) error {
	if r.sink.Node == nil {
		return nil
	}
	id, err := o.takeID("id")
	if err != nil {
		return err
	}
	if id == "" {
		return fmt.Errorf(`a node needs an "id" and an edge "from" and "to", as in %s`, exampleLine)
	}

	// If there are "labels", "type" is a property.
	_, labelled := o["labels"]
	n := Node{ID: id}
	if labelled {
		n.Labels, err = o.takeLabels("labels")
	} else if o["type"] != "node" {
		n.Labels, err = o.takeLabels("type")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", nameRecord("node", id), err)
	}
	if o["type"] == "node" {
		delete(o, "type")
	}

	if n.Properties, err = o.takeProperties(); err != nil {
		return fmt.Errorf("%s: %w", nameRecord("node", id), err)
	}

	return r.node(n)
}

func (r *reading) emitEdge(o object) error {
	if r.sink.Edge == nil {
		return nil
	}
	var e Edge
	var err error
	if o["type"] == "relationship" {
		delete(o, "type")
	}
	for _, key := range typeKeys {
		if text, ok := o[key].(string); ok && e.Type == "" {
			e.Type = text
			delete(o, key)
		}
	}

	if e.From, err = o.takeID(fromKeys...); err != nil {
		return err
	}
	if e.To, err = o.takeID(toKeys...); err != nil {
		return err
	}
	if e.From == "" || e.To == "" {
		return fmt.Errorf(`an edge needs "from" and "to", as in %s`, exampleLine)
	}
	if e.ID, err = o.takeID("id"); err != nil {
		return err
	}

	if e.Properties, err = o.takeProperties(); err != nil {
		return fmt.Errorf("%s: %w", nameRecord("edge from", e.From), err)
	}

	return r.edge(e)
}

// takeID removes the first existing key and returns its value as an identifier, or "" if none
// exists. The nodes of an edge may be objects.
func (o object) takeID(keys ...string) (string, error) {
	for _, key := range keys {
		value, ok := o[key]
		if !ok || value == nil {
			continue
		}
		delete(o, key)
		if inner, ok := value.(map[string]any); ok {
			value = inner["id"]
		}

		switch v := value.(type) {
		case string:
			return v, nil
		case int64:
			return strconv.FormatInt(v, 10), nil
		case float64, []any: // nodes may be Python tuples
			return string(appendValue(nil, v)), nil
		}
		return "", fmt.Errorf("the value of %q is not an identifier: write a text or a number", key)
	}

	return "", nil
}

// takeLabels removes a string or a list of strings, and returns it as a list.
func (o object) takeLabels(key string) ([]string, error) {
	value := o[key]
	delete(o, key)
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		labels := make([]string, 0, len(v))
		for _, element := range v {
			label, ok := element.(string)
			if !ok {
				return nil, fmt.Errorf("the labels in %q are not all texts", key)
			}
			labels = append(labels, label)
		}
		return labels, nil
	}

	return nil, fmt.Errorf("the value of %q is neither a text nor a list of texts", key)
}

// takeProperties returns the remaining members: those of the object "properties", and all other
// keys.
func (o object) takeProperties() (map[string]any, error) {
	nested, ok := o["properties"].(map[string]any)
	if ok {
		delete(o, "properties")
		for key, value := range nested {
			if _, twice := o[key]; twice {
				return nil, fmt.Errorf("the property %q appears twice, in \"properties\" and outside", key)
			}
			o[key] = value
		}
	}

	maps.DeleteFunc(o, func(_ string, value any) bool { return value == nil })
	return o, nil
}

// sortedNames returns the sorted names of properties.
func sortedNames(properties map[string]any) []string {
	return slices.Sorted(maps.Keys(properties))
}
