package graphtruth

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// The types of values in feature files, in addition to Go's nil, bool, int64, float64, string,
// []any and map[string]any.
type (
	node struct {
		labels     []string // sorted
		properties map[string]any
	}
	relationship struct {
		kind       string
		properties map[string]any
	}
	// trail is a path. It has one more node than relationships. Where backward is true, the
	// relationship points to the previous node.
	trail struct {
		nodes         []node
		relationships []relationship
		backward      []bool
	}
)

// notation parses the values of the feature files.
type notation struct {
	text string
	at   int
}

// parseValue parses one value.
func parseValue(text string) (value any, err error) {
	defer func() {
		if message, ok := recover().(notationError); ok {
			err = fmt.Errorf("%s in %q", message, text)
		}
	}()
	n := &notation{text: text}
	value = n.value()
	if n.space(); n.at != len(n.text) {
		n.fail("something follows the value")
	}
	return value, nil
}

// notationError ends the parsing of a malformed value.
type notationError string

func (n *notation) fail(message string) {
	panic(notationError(fmt.Sprintf("%s at %d", message, n.at)))
}

func (n *notation) space() {
	for n.at < len(n.text) && unicode.IsSpace(rune(n.text[n.at])) {
		n.at++
	}
}

// next skips white space, and consumes the token if it follows.
func (n *notation) next(token string) bool {
	n.space()
	if !strings.HasPrefix(n.text[n.at:], token) {
		return false
	}
	n.at += len(token)
	return true
}

func (n *notation) want(token string) {
	if !n.next(token) {
		n.fail("no " + token)
	}
}

func (n *notation) value() any {
	n.space()
	switch rest := n.text[n.at:]; {
	case strings.HasPrefix(rest, "("):
		return n.node()
	case strings.HasPrefix(rest, "[:"):
		return n.relationship()
	case strings.HasPrefix(rest, "<"):
		return n.trail()
	case strings.HasPrefix(rest, "{"):
		return n.properties()
	case n.next("["):
		return n.list()
	case n.next("'"):
		return n.quoted()
	}
	return n.scalar()
}

func (n *notation) list() []any {
	items := []any{}
	for !n.next("]") {
		items = append(items, n.value())
		if !n.next(",") {
			n.want("]")
			break
		}
	}
	return items
}

func (n *notation) quoted() string {
	var b strings.Builder
	for n.at < len(n.text) {
		c := n.text[n.at]
		n.at++
		switch {
		case c == '\'':
			return b.String()
		case c == '\\' && n.at < len(n.text):
			b.WriteByte(n.text[n.at])
			n.at++
		default:
			b.WriteByte(c)
		}
	}
	n.fail("a string does not end")
	return ""
}

func (n *notation) scalar() any {
	length := strings.IndexAny(n.text[n.at:]+",", ",]})> ")
	word := n.text[n.at : n.at+length]
	n.at += length
	switch word {
	case "null":
		return nil
	case "true", "false":
		return word == "true"
	case "NaN":
		return math.NaN()
	}
	if number, err := strconv.ParseInt(word, 10, 64); err == nil {
		return number
	}
	number, err := strconv.ParseFloat(word, 64)
	if err != nil {
		n.fail("no value " + word)
	}
	return number
}

// name parses the name of a label, a type or a property.
func (n *notation) name() string {
	n.space()
	if n.next("`") {
		name, _, _ := strings.Cut(n.text[n.at:], "`")
		n.at += len(name) + 1
		return name
	}
	rest := n.text[n.at:]
	length := strings.IndexFunc(rest+" ", func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
	n.at += length
	return rest[:length]
}

func (n *notation) properties() map[string]any {
	properties := map[string]any{}
	if !n.next("{") {
		return properties
	}
	for !n.next("}") {
		name := n.name()
		n.want(":")
		properties[name] = n.value()
		if !n.next(",") {
			n.want("}")
			break
		}
	}
	return properties
}

func (n *notation) node() node {
	n.want("(")
	var labels []string
	for n.next(":") {
		labels = append(labels, n.name())
	}
	found := node{slices.Sorted(slices.Values(labels)), n.properties()}
	n.want(")")
	return found
}

func (n *notation) relationship() relationship {
	n.want("[:")
	found := relationship{n.name(), n.properties()}
	n.want("]")
	return found
}

func (n *notation) trail() trail {
	n.want("<")
	found := trail{nodes: []node{n.node()}}
	for !n.next(">") {
		backward := n.next("<-")
		if !backward {
			n.want("-")
		}
		found.relationships = append(found.relationships, n.relationship())
		if backward {
			n.want("-")
		} else {
			n.want("->")
		}
		found.backward = append(found.backward, backward)
		found.nodes = append(found.nodes, n.node())
	}
	return found
}

// sameValue reports whether the value of a result is the expected one. With anyOrder, the order of
// lists does not matter.
func sameValue(got, want any, anyOrder bool) bool {
	switch want := want.(type) {
	case node:
		return sameNode(got, want, anyOrder)
	case relationship:
		fields, ok := got.(map[string]any)
		return ok && fields["type"] == want.kind && has(fields, "from", "to") &&
			sameProperties(fields, []string{"id", "type", "from", "to"}, want.properties, anyOrder)
	case trail:
		return sameTrail(got, want, anyOrder)
	case []any:
		list, ok := got.([]any)
		return ok && sameList(list, want, anyOrder)
	case map[string]any:
		fields, ok := got.(map[string]any)
		return ok && len(fields) == len(want) && sameProperties(fields, nil, want, anyOrder)
	case float64:
		number, ok := got.(float64)
		return ok && (number == want || math.IsNaN(number) && math.IsNaN(want) ||
			math.Abs(number-want) <= 1e-14*math.Abs(want))
	}
	return reflect.DeepEqual(got, want)
}

func sameNode(got any, want node, anyOrder bool) bool {
	fields, ok := got.(map[string]any)
	if !ok || !has(fields, "id", "labels") {
		return false
	}
	names, _ := fields["labels"].([]any)
	var labels []string
	for _, name := range names {
		label, _ := name.(string)
		labels = append(labels, label)
	}
	slices.Sort(labels)
	return slices.Equal(labels, want.labels) &&
		sameProperties(fields, []string{"id", "labels"}, want.properties, anyOrder)
}

func sameTrail(got any, want trail, anyOrder bool) bool {
	fields, _ := got.(map[string]any)
	nodes, _ := fields["nodes"].([]any)
	relationships, _ := fields["relationships"].([]any)
	if len(nodes) != len(want.nodes) || len(relationships) != len(want.relationships) {
		return false
	}
	for i := range nodes {
		if !sameNode(nodes[i], want.nodes[i], anyOrder) {
			return false
		}
	}
	for i := range relationships {
		if !sameValue(relationships[i], want.relationships[i], anyOrder) {
			return false
		}
		from := i
		if want.backward[i] {
			from++
		}
		start, _ := nodes[from].(map[string]any)
		edge, _ := relationships[i].(map[string]any)
		if !reflect.DeepEqual(edge["from"], start["id"]) {
			return false
		}
	}
	return true
}

func has(fields map[string]any, names ...string) bool {
	for _, name := range names {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	return true
}

// sameProperties compares properties. The fields that all nodes and relationships have are compared
// as properties only if they are expected.
func sameProperties(got map[string]any, fields []string, want map[string]any, anyOrder bool) bool {
	for name, value := range got {
		wanted, ok := want[name]
		if !ok && slices.Contains(fields, name) {
			continue
		}
		if !ok || !sameValue(value, wanted, anyOrder) {
			return false
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			return false
		}
	}
	return true
}

func sameList(got, want []any, anyOrder bool) bool {
	if len(got) != len(want) {
		return false
	}
	if anyOrder {
		return pairs(len(got), func(i, j int) bool { return sameValue(got[i], want[j], true) })
	}
	for i := range got {
		if !sameValue(got[i], want[i], false) {
			return false
		}
	}
	return true
}

// pairs reports whether n values can be matched one-to-one with n other values that are equal.
func pairs(n int, equal func(i, j int) bool) bool {
	taken := make([]bool, n)
	for i := range n {
		found := -1
		for j := range n {
			if !taken[j] && equal(i, j) {
				found = j
				break
			}
		}
		if found < 0 {
			return false
		}
		taken[found] = true
	}
	return true
}

func TestNotation(t *testing.T) {
	t.Parallel()
	value, err := parseValue(`[1, -2.5, 'it\'s', null, true, {a: [], ` + "`b c`" + `: {}}, (:B:A {x: 1}), [:T],
		<(:A)<-[:T {y: 2}]-()>]`)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{
		int64(1), -2.5, "it's", nil, true,
		map[string]any{"a": []any{}, "b c": map[string]any{}},
		node{[]string{"A", "B"}, map[string]any{"x": int64(1)}},
		relationship{"T", map[string]any{}},
		trail{
			[]node{{[]string{"A"}, map[string]any{}}, {nil, map[string]any{}}},
			[]relationship{{"T", map[string]any{"y": int64(2)}}},
			[]bool{true},
		},
	}
	if !reflect.DeepEqual(value, want) {
		t.Errorf("parseValue = %#v\nwant %#v", value, want)
	}

	a := map[string]any{"id": int64(3), "labels": []any{"A"}}
	b := map[string]any{"id": int64(4), "labels": []any{}}
	edge := map[string]any{"id": int64(1), "type": "T", "from": int64(4), "to": int64(3), "y": int64(2)}
	walk := map[string]any{"nodes": []any{a, b}, "relationships": []any{edge}}
	if !sameValue(walk, want[8], false) {
		t.Error("a path is not the same as its notation")
	}
	if forward, _ := parseValue("<(:A)-[:T {y: 2}]->()>"); sameValue(walk, forward, false) {
		t.Error("the direction of a path makes no difference")
	}
	if sameValue([]any{int64(1), int64(2)}, []any{int64(2), int64(1)}, false) {
		t.Error("the order of a list makes no difference")
	}
	if !sameValue([]any{int64(1), int64(2)}, []any{int64(2), int64(1)}, true) {
		t.Error("the order of a list makes a difference")
	}
	if sameValue(int64(1), 1.0, false) || sameValue(a, b, false) {
		t.Error("different values are the same")
	}
}
