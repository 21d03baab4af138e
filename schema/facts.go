package schema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// facts is what a check needs to know of one schema in a document and would
// otherwise have to find out for each value.
type facts struct {
	types typeSet
	// node is the schema in the document: it has the order of the properties.
	node *node
	// here are the schemas that apply to the same value, below those that apply
	// to its parts.
	here, below []*jsonschema.Schema
	weight      int     // the cost of this schema alone, for a value and each 64 bytes of its text
	total       int     // an upper bound with all that it leads to, for each value; maxWork if it recurs
	admitted    typeSet // the types that a valid value can have
	patterns    []patternRule
}

// patternRule is one of patternProperties, in the order of their patterns.
type patternRule struct {
	re  jsonschema.Regexp
	sub *jsonschema.Schema
}

// typeSet is a set of the types of JSON Schema; empty means all.
type typeSet uint8

const (
	wantsNull typeSet = 1 << iota
	wantsBoolean
	wantsInteger
	wantsNumber
	wantsString
	wantsArray
	wantsObject
)

var typeNames = map[string]typeSet{
	"null": wantsNull, "boolean": wantsBoolean, "integer": wantsInteger, "number": wantsNumber,
	"string": wantsString, "array": wantsArray, "object": wantsObject,
}

// admits reports whether a value of a kind can be of one of the types.
func (t typeSet) admits(n *node) bool {
	switch n.kind {
	case nullKind:
		return t == 0 || t&wantsNull != 0
	case boolKind:
		return t == 0 || t&wantsBoolean != 0
	case numberKind:
		if t&wantsInteger != 0 && t&wantsNumber == 0 {
			_, ok := whole(n.text)
			return ok
		}
		return t == 0 || t&wantsNumber != 0
	case textKind:
		return t == 0 || t&wantsString != 0
	case arrayKind:
		return t == 0 || t&wantsArray != 0
	default:
		return t == 0 || t&wantsObject != 0
	}
}

// learn walks all schemas that the root leads to.
func (c *Contract) learn() error {
	c.facts = map[*jsonschema.Schema]*facts{}
	queue := []*jsonschema.Schema{c.root}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if c.facts[s] != nil {
			continue
		}
		if len(c.facts) == maxSubschemas {
			return fmt.Errorf("it has more than %d schemas in it", maxSubschemas)
		}
		node, err := c.locate(s.Location)
		if err != nil {
			return err
		}
		f := c.factsOf(s, node)
		c.facts[s] = f
		queue = append(append(queue, f.here...), f.below...)
	}
	marks := map[*jsonschema.Schema]mark{}
	if err := c.refuseLoops(c.root, marks); err != nil {
		return err
	}
	for s := range c.facts {
		if err := c.refuseLoops(s, marks); err != nil {
			return err
		}
	}
	c.sum(c.root, map[*jsonschema.Schema]bool{})
	for s := range c.facts {
		c.admits(s, map[*jsonschema.Schema]bool{})
	}
	return nil
}

// locate finds a schema in the document by its address.
func (c *Contract) locate(location string) (*node, error) {
	pointer, ok := strings.CutPrefix(location, base+"#")
	if !ok {
		return nil, fmt.Errorf("it refers to %s, which is another document: put what it says under \"$defs\"", clip(location, 200))
	}
	n := c.document
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		name, err := url.PathUnescape(token)
		if err != nil {
			return nil, fmt.Errorf("cannot find %s in it: %w", clip(location, 200), err)
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if n.kind == arrayKind {
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(n.kids) {
				return nil, fmt.Errorf("cannot find %s in it", clip(location, 200))
			}
			n = n.kids[i]
		} else if n = n.member(name); n == nil {
			return nil, fmt.Errorf("cannot find %s in it", clip(location, 200))
		}
	}
	return n, nil
}

func (c *Contract) factsOf(s *jsonschema.Schema, n *node) *facts {
	f := &facts{node: n, weight: 1}
	if s.Types != nil {
		for _, name := range s.Types.ToStrings() {
			f.types |= typeNames[name]
		}
	}
	if s.Enum != nil {
		f.weight += len(s.Enum.Values) / 8
	}
	for re, sub := range s.PatternProperties {
		f.patterns = append(f.patterns, patternRule{re, sub})
		f.weight += c.programs[re.String()]
	}
	slices.SortFunc(f.patterns, func(a, b patternRule) int { return strings.Compare(a.re.String(), b.re.String()) })
	if s.Pattern != nil {
		f.weight += c.programs[s.Pattern.String()]
	}
	if s.Format != nil && s.Format.Name == "regex" { // a check compiles the value
		f.weight += maxProgram / 2
	}
	f.here, f.below = applied(s)
	return f
}

// applied returns the schemas that s applies to the same value, and those that
// it applies to parts of it.
func applied(s *jsonschema.Schema) (here, below []*jsonschema.Schema) {
	add := func(list *[]*jsonschema.Schema, more ...*jsonschema.Schema) {
		for _, one := range more {
			if one != nil {
				*list = append(*list, one)
			}
		}
	}
	loose := func(list *[]*jsonschema.Schema, value any) {
		switch v := value.(type) {
		case *jsonschema.Schema:
			add(list, v)
		case []*jsonschema.Schema:
			add(list, v...)
		}
	}
	add(&here, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		add(&here, s.DynamicRef.Ref)
	}
	add(&here, s.AllOf...)
	add(&here, s.AnyOf...)
	add(&here, s.OneOf...)
	for _, sub := range s.DependentSchemas {
		add(&here, sub)
	}
	for _, value := range s.Dependencies {
		loose(&here, value)
	}
	for _, sub := range s.Properties {
		add(&below, sub)
	}
	for _, sub := range s.PatternProperties {
		add(&below, sub)
	}
	loose(&below, s.AdditionalProperties)
	loose(&below, s.Items)
	loose(&below, s.AdditionalItems)
	add(&below, s.PrefixItems...)
	add(&below, s.Items2020, s.Contains, s.PropertyNames, s.UnevaluatedItems, s.UnevaluatedProperties, s.ContentSchema)
	return here, below
}

type mark int

const (
	unseen mark = iota
	open
	done
)

// refuseLoops refuses schemas that apply themselves to the same value: they say
// nothing, and following them would never end.
func (c *Contract) refuseLoops(s *jsonschema.Schema, marks map[*jsonschema.Schema]mark) error {
	switch marks[s] {
	case done:
		return nil
	case unseen:
	case open:
		return fmt.Errorf("the schema at #%s refers to itself without going into the value", clip(strings.TrimPrefix(s.Location, base+"#"), 200))
	}
	marks[s] = open
	for _, sub := range c.facts[s].here {
		if err := c.refuseLoops(sub, marks); err != nil {
			return err
		}
	}
	marks[s] = done
	return nil
}

// maxWork bounds how often schemas are applied in one check. One application
// takes some hundred nanoseconds.
const maxWork = 2_000_000

var errWork = errors.New("the schema applies its rules to this value too often: make the value smaller, or the schema simpler (fewer alternatives that recur)")

// sum fills in the totals: each schema's weight and that of all below it. A
// schema that leads back to itself has no such bound.
func (c *Contract) sum(s *jsonschema.Schema, under map[*jsonschema.Schema]bool) int {
	f := c.facts[s]
	if f.total > 0 {
		return f.total
	}
	if under[s] {
		return maxWork
	}
	under[s] = true
	total := f.weight
	for _, subs := range [][]*jsonschema.Schema{f.here, f.below} {
		for _, sub := range subs {
			total = min(maxWork, total+c.sum(sub, under))
		}
	}
	delete(under, s)
	f.total = total
	return total
}

// meter computes what a check costs before it is done. The library cannot be
// stopped, and alternatives that recur cost it time exponential in the depth of
// the value; computed with a memory of what has been seen, the cost is
// found in time proportional to schemas times values.
type meter struct {
	c    *Contract
	seen map[visit]int
}

type visit struct {
	s *jsonschema.Schema
	n *node
}

// cost returns an upper bound of how often schemas are applied if s is applied
// to n, at most maxWork.
func (c *Contract) cost(s *jsonschema.Schema, n *node) int {
	if bound := c.facts[s].total * n.size; bound < maxWork/16 {
		return bound
	}
	m := meter{c, map[visit]int{}}
	return m.cost(s, n)
}

func (m *meter) cost(s *jsonschema.Schema, n *node) int {
	f := m.c.facts[s]
	if bound := f.total * n.size; bound < 64 { // dearer to remember than to bound
		return bound
	}
	at := visit{s, n}
	if known, ok := m.seen[at]; ok {
		return known
	}
	if len(m.seen) > maxWork/4 {
		return maxWork
	}
	m.seen[at] = maxWork // what a loop would find
	work := f.weight*n.own + len(n.kids)/4
	if work >= maxWork { // before the patterns run over the keys
		return maxWork
	}
	for _, sub := range f.here {
		work = min(maxWork, work+m.cost(sub, n))
	}
	if s.PropertyNames != nil {
		for _, key := range n.keys {
			work = min(maxWork, work+m.cost(s.PropertyNames, newText(key)))
		}
	}
	for i, kid := range n.kids {
		for _, sub := range m.c.subschemas(s, f, n, i) {
			work = min(maxWork, work+m.cost(sub, kid))
		}
		if work >= maxWork {
			break
		}
	}
	m.seen[at] = work
	return work
}

// subschemas returns the schemas that s applies to the part i of n.
func (c *Contract) subschemas(s *jsonschema.Schema, f *facts, n *node, i int) []*jsonschema.Schema {
	var subs []*jsonschema.Schema
	add := func(values ...any) {
		for _, value := range values {
			if sub, ok := value.(*jsonschema.Schema); ok && sub != nil {
				subs = append(subs, sub)
			}
		}
	}
	switch n.kind {
	case objectKind:
		own, known := s.Properties[n.keys[i]]
		add(own)
		for _, rule := range f.patterns {
			if rule.re.MatchString(n.keys[i]) {
				add(rule.sub)
				known = true
			}
		}
		if !known {
			add(s.AdditionalProperties)
		}
		add(s.UnevaluatedProperties)
	case arrayKind:
		add(itemSchema(s, i), s.Contains, s.UnevaluatedItems)
	default:
	}
	return subs
}

// itemSchema returns the schema of an array's item i, nil if it may be anything.
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
