package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Bounds of a file. The value of an alias is counted each time it is used.
const (
	maxFile  = 1 << 20 // bytes
	maxDepth = 40
	maxParts = 20_000  // values and keys
	maxTexts = 4 << 20 // bytes of all strings together
)

// Kind is the kind of a value in a file.
type Kind string

// The kinds of values.
const (
	Object Kind = "object"
	List   Kind = "list"
	Text   Kind = "text"
	Other  Kind = "other" // a number, a boolean or null
)

// Tree is a value of a file with its position. It is immutable.
type Tree struct {
	// Line and Column are its position, from 1.
	Line, Column int
	Kind         Kind
	// Keys and Items are the members of an object, in order; a list has only Items.
	Keys, Items []*Tree
	// Text is the string of a value of kind Text.
	Text string

	scalar  any  // the value if kind is Other: nil, bool or json.Number
	literal bool // a Text whose lines begin on the line after Line
}

// Get returns a member of an object, or nil.
func (t *Tree) Get(key string) *Tree {
	if t == nil {
		return nil
	}
	for i, k := range t.Keys {
		if k.Text == key {
			return t.Items[i]
		}
	}

	return nil
}

// Plain returns the value in the types of encoding/json: map[string]any, []any, string,
// [json.Number], bool or nil.
func (t *Tree) Plain() any {
	switch t.Kind {
	case Object:
		plain := make(map[string]any, len(t.Keys))
		for i, key := range t.Keys {
			plain[key.Text] = t.Items[i].Plain()
		}
		return plain
	case List:
		plain := make([]any, len(t.Items))
		for i, item := range t.Items {
			plain[i] = item.Plain()
		}
		return plain
	case Text:
		return t.Text
	default:
		return t.scalar
	}
}

// treeOf returns a value of encoding/json as a Tree without a position.
func treeOf(value any) *Tree {
	switch v := value.(type) {
	case map[string]any:
		t := &Tree{Kind: Object}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			t.Keys, t.Items = append(t.Keys, &Tree{Kind: Text, Text: key}), append(t.Items, treeOf(v[key]))
		}
		return t
	case []any:
		t := &Tree{Kind: List}
		for _, item := range v {
			t.Items = append(t.Items, treeOf(item))
		}
		return t
	case string:
		return &Tree{Kind: Text, Text: v}
	}

	return &Tree{Kind: Other, scalar: value}
}

// parseTree reads one YAML document.
func parseTree(source []byte) (tree *Tree, wrong *Problem) {
	if len(source) > maxFile {
		return nil, &Problem{
			Line: 1, Column: 1, Message: fmt.Sprintf("the file has more than %d bytes", maxFile),
		}
	}

	defer func() {
		if r := recover(); r != nil { // the library panics when its invariants are violated
			tree, wrong = nil, &Problem{
				Line: 1, Column: 1, Message: fmt.Sprintf("the YAML reader failed: %v", r),
			}
		}
	}()

	decoder := yaml.NewDecoder(bytes.NewReader(source))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Problem{Line: 1, Column: 1, Message: "the file is empty"}
		}
		return nil, yamlProblem(err)
	}

	if err := decoder.Decode(&more); err == nil {
		return nil, &Problem{
			Line: more.Line, Column: more.Column, Message: "the file has a second document: give only one",
		}
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlProblem(err)
	}

	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, &Problem{Line: 1, Column: 1, Message: "the file is empty"}
	}
	return (&planter{}).plant(document.Content[0], 0)
}

var yamlLine = lazyregexp.New(`^yaml: (?:line (\d+): )?`)

// yamlProblem translates an error of the YAML library.
func yamlProblem(err error) *Problem {
	text := err.Error()
	p := &Problem{Line: 1, Column: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			p.Line = n
		}
	}

	p.Message = "this is not YAML: " + shortenText(text, 300)
	return p
}

// planter builds a Tree from the library's nodes and counts its parts.
type planter struct {
	parts, texts int
}

func problemAt(n *yaml.Node, format string, args ...any) *Problem {
	return &Problem{
		Line: max(1, n.Line), Column: max(1, n.Column), Message: fmt.Sprintf(format, args...),
	}
}

func (p *planter) plant(n *yaml.Node, depth int) (*Tree, *Problem) {
	if p.parts++; p.parts > maxParts {
		return nil, problemAt(
			n, "the file has more than %d values, with each use of an alias counted",
			maxParts,
		)
	}

	if depth > maxDepth {
		return nil, problemAt(n, "the value is nested more than %d levels deep", maxDepth)
	}
	t := &Tree{Line: max(1, n.Line), Column: max(1, n.Column)}
	switch n.Kind {
	case yaml.AliasNode:
		return p.plant(n.Alias, depth+1)
	case yaml.MappingNode:
		t.Kind = Object
		return t, p.members(t, n, depth)
	case yaml.SequenceNode:
		t.Kind = List
		for _, item := range n.Content {
			planted, wrong := p.plant(item, depth+1)
			if wrong != nil {
				return nil, wrong
			}
			t.Items = append(t.Items, planted)
		}
		return t, nil
	case yaml.ScalarNode:
		return t, p.scalar(t, n)
	default:
		return nil, problemAt(n, "this kind of YAML node is not allowed")
	}
}

// members plants the members of a mapping.
func (p *planter) members(t *Tree, n *yaml.Node, depth int) *Problem {
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		if name.Tag == "!!merge" {
			return problemAt(
				name,
				"merge keys are not allowed: write the members out, or use an alias for the whole value",
			)
		}

		key, wrong := p.plant(name, depth+1)
		if wrong != nil {
			return wrong
		}
		if key.Kind == Other {
			key.Kind, key.Text = Text, name.Value // a key such as 2026: or true:
		}
		if key.Kind != Text {
			return problemAt(name, "a key must be a text")
		}
		if seen[key.Text] {
			return problemAt(name, "the key %s appears twice", quoteName(key.Text))
		}

		seen[key.Text] = true
		value, wrong := p.plant(n.Content[i+1], depth+1)
		if wrong != nil {
			return wrong
		}
		t.Keys, t.Items = append(t.Keys, key), append(t.Items, value)
	}

	return nil
}

// scalar plants a single value. Dates become strings.
func (p *planter) scalar(t *Tree, n *yaml.Node) *Problem {
	if p.texts += len(n.Value); p.texts > maxTexts {
		return problemAt(
			n,
			"the texts of the file have more than %d bytes together, with each use of an alias counted",
			maxTexts,
		)
	}

	var value any
	if err := n.Decode(&value); err != nil {
		return problemAt(n, "%s", yamlLine.ReplaceAllString(shortenText(err.Error(), 200), ""))
	}
	t.Kind = Other
	switch v := value.(type) {
	case string:
		t.Kind, t.Text = Text, v
		t.literal = n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	case time.Time:
		t.Kind, t.Text = Text, n.Value
	case nil, bool:
		t.scalar = v
	case int, int64, uint64:
		t.scalar = json.Number(fmt.Sprint(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return problemAt(n, "%s is not a number in JSON", n.Value)
		}
		t.scalar = json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	default:
		return problemAt(n, "the tag %s is not allowed", quoteName(n.Tag))
	}

	return nil
}
