package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSubschemas bounds the schemas in one document, references followed.
const maxSubschemas = 2_000

// facts is what a check needs to know about one schema, computed once instead of for
// each value.
type facts struct {
	types typeSet
	// node is the schema in the document. It has the order of the properties.
	node *node
	// here are the schemas that apply to the same value, below those that apply to parts
	// of it.
	here, below []*jsonschema.Schema
	weight      int // the work of this schema alone, for a value and each 64 bytes of its text
	more        extraWork
	total       int     // an upper bound of the work with all subschemas; maxWork if it recurs
	admitted    typeSet // the types that a valid value can have
	patterns    []patternRule
	required    map[string]bool
}

// patternRule is one of patternProperties.
type patternRule struct {
	re  jsonschema.Regexp
	sub *jsonschema.Schema
}

// collectFacts computes the facts of all schemas that the root leads to.
func (c *Contract) collectFacts() error {
	c.facts = map[*jsonschema.Schema]*facts{}
	queue := []*jsonschema.Schema{c.root}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if c.facts[s] != nil {
			continue
		}
		if len(c.facts) == maxSubschemas {
			return fmt.Errorf("it contains more than %d schemas", maxSubschemas)
		}

		node, err := c.locate(s.Location)
		if err != nil {
			return err
		}
		f := c.newFacts(s, node)
		c.facts[s] = f
		queue = append(append(queue, f.here...), f.below...)
	}

	if err := c.rejectLoops(); err != nil {
		return err
	}
	c.sumWork(c.root, map[*jsonschema.Schema]bool{})
	for s := range c.facts {
		c.admittedTypes(s, map[*jsonschema.Schema]bool{})
	}
	return nil
}

// locate finds a schema in the document by its address.
func (c *Contract) locate(location string) (*node, error) {
	pointer, ok := strings.CutPrefix(location, baseURL+"#")
	if !ok {
		return nil, fmt.Errorf(
			"it refers to another document, %s: copy that schema into \"$defs\"",
			clip(location, 200))
	}
	if pointer == "" {
		return c.document, nil
	}

	n := c.document
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name, err := url.PathUnescape(token)
		if err != nil {
			return nil, fmt.Errorf("cannot find %s in it: %w", clip(location, 200), err)
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if n = n.child(name); n == nil {
			return nil, fmt.Errorf("cannot find %s in it", clip(location, 200))
		}
	}
	return n, nil
}

// child returns the item or member with a name, nil if there is none.
func (n *node) child(name string) *node {
	if n.kind != arrayKind {
		return n.member(name)
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(n.kids) {
		return nil
	}
	return n.kids[i]
}

// newFacts returns the facts of one schema, without those that depend on others.
func (c *Contract) newFacts(s *jsonschema.Schema, n *node) *facts {
	f := &facts{node: n, weight: 1, more: newExtraWork(s), required: map[string]bool{}}
	if s.Types != nil {
		for _, name := range s.Types.ToStrings() {
			f.types |= typeNames[name]
		}
	}

	for _, name := range s.Required {
		f.required[name] = true
	}
	f.weight += countNames(s)
	if s.Pattern != nil {
		f.weight += c.programs[s.Pattern.String()]
	}
	if s.Format != nil {
		f.weight += formatWork
		if s.Format.Name == "regex" { // a check compiles the value
			f.weight += maxProgram / 2
		}
	}
	for re, sub := range s.PatternProperties {
		f.patterns = append(f.patterns, patternRule{re, sub})
		f.weight += c.programs[re.String()]
	}
	slices.SortFunc(f.patterns, func(a, b patternRule) int {
		return strings.Compare(a.re.String(), b.re.String())
	})

	f.here, f.below = schemasHere(s), schemasBelow(s)
	return f
}

// schemasHere returns the schemas that s applies to the same value.
func schemasHere(s *jsonschema.Schema) []*jsonschema.Schema {
	here := appendPresent(nil,
		s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, dynamicTarget(s))
	here = slices.Concat(here, s.AllOf, s.AnyOf, s.OneOf)
	for _, sub := range s.DependentSchemas {
		here = append(here, sub)
	}
	for _, value := range s.Dependencies {
		here = append(here, schemasIn(value)...)
	}
	return here
}

// schemasBelow returns the schemas that s applies to parts of the value.
func schemasBelow(s *jsonschema.Schema) []*jsonschema.Schema {
	var below []*jsonschema.Schema
	for _, sub := range s.Properties {
		below = append(below, sub)
	}
	for _, sub := range s.PatternProperties {
		below = append(below, sub)
	}
	for _, value := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		below = append(below, schemasIn(value)...)
	}
	below = append(below, s.PrefixItems...)
	return appendPresent(below, s.Items2020, s.Contains, s.PropertyNames,
		s.UnevaluatedItems, s.UnevaluatedProperties, s.ContentSchema)
}

// schemasIn returns the schemas in a field that the library leaves untyped.
func schemasIn(value any) []*jsonschema.Schema {
	switch v := value.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

// appendPresent appends the schemas that are not nil.
func appendPresent(all []*jsonschema.Schema, more ...*jsonschema.Schema) []*jsonschema.Schema {
	for _, s := range more {
		if s != nil {
			all = append(all, s)
		}
	}
	return all
}

// dynamicTarget returns what a "$dynamicRef" refers to, nil if there is none.
func dynamicTarget(s *jsonschema.Schema) *jsonschema.Schema {
	if s.DynamicRef == nil {
		return nil
	}
	return s.DynamicRef.Ref
}

// itemSchema returns the schema of an array's item i, nil if the item may be anything.
func itemSchema(s *jsonschema.Schema, i int) *jsonschema.Schema {
	switch {
	case i < len(s.PrefixItems):
		return s.PrefixItems[i]
	case s.Items2020 != nil:
		return s.Items2020
	}

	switch items := s.Items.(type) { // draft-07
	case *jsonschema.Schema:
		return items
	case []*jsonschema.Schema:
		if i < len(items) {
			return items[i]
		}
		if rest, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
			return rest
		}
	}
	return nil
}

// partSchemas returns the schemas that s applies to the part i of a value.
func (c *Contract) partSchemas(
	s *jsonschema.Schema, f *facts, n *node, i int,
) []*jsonschema.Schema {
	switch n.kind {
	case objectKind:
		return memberSchemas(s, f, n.keys[i])
	case arrayKind:
		return appendPresent(nil, itemSchema(s, i), s.Contains, s.UnevaluatedItems)
	default:
		return nil
	}
}

// memberSchemas returns the schemas that s applies to the member with a name.
func memberSchemas(s *jsonschema.Schema, f *facts, name string) []*jsonschema.Schema {
	own, isKnown := s.Properties[name]
	subs := appendPresent(nil, own)
	for _, rule := range f.patterns {
		if rule.re.MatchString(name) {
			subs = append(subs, rule.sub)
			isKnown = true
		}
	}
	if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !isKnown {
		subs = append(subs, rest)
	}
	return appendPresent(subs, s.UnevaluatedProperties)
}

// mark is the state of a schema in the search for loops.
type mark int

const (
	unseen mark = iota
	open
	done
)

// rejectLoops rejects schemas that apply themselves to the same value. They constrain
// nothing, and following them would never end.
func (c *Contract) rejectLoops() error {
	marks := map[*jsonschema.Schema]mark{}
	if err := c.rejectLoop(c.root, marks); err != nil {
		return err
	}
	for s := range c.facts {
		if err := c.rejectLoop(s, marks); err != nil {
			return err
		}
	}
	return nil
}

// rejectLoop rejects a schema that leads back to itself.
func (c *Contract) rejectLoop(s *jsonschema.Schema, marks map[*jsonschema.Schema]mark) error {
	switch marks[s] {
	case done:
		return nil
	case open:
		return fmt.Errorf("the schema at #%s refers to itself in an endless loop",
			clip(strings.TrimPrefix(s.Location, baseURL+"#"), 200))
	case unseen:
	}

	marks[s] = open
	for _, sub := range c.facts[s].here {
		if err := c.rejectLoop(sub, marks); err != nil {
			return err
		}
	}
	marks[s] = done
	return nil
}
