package schema

import "math/big"

// subschema is one schema of a document: its rules, and the facts about them that checks need,
// computed once instead of for each value. Absent rules are nil or zero. It does not change after
// compilation.
type subschema struct {
	// node is the schema in the document. It keeps the order of the properties.
	node *node
	at   string // the JSON pointer of node

	always *bool // the schema true or false, which has no other rules

	types    typeSet
	constant *node
	enum     []*node // nil without the rule
	format   string  // a known format

	multipleOf                         *big.Rat
	minimum, maximum                   *big.Rat
	exclusiveMinimum, exclusiveMaximum *big.Rat

	minLength, maxLength *int
	pattern              *pattern

	minItems, maxItems       *int
	uniqueItems              bool
	prefixItems              []*subschema
	items                    *subschema // for the items after prefixItems
	contains                 *subschema
	minContains, maxContains *int
	unevaluatedItems         *subschema

	minProperties, maxProperties *int
	required                     []string
	requires                     map[string]bool // the names in required, as a set
	properties                   map[string]*subschema
	patternProperties            []patternRule
	additionalProperties         *subschema
	propertyNames                *subschema
	dependents                   []dependent
	unevaluatedProperties        *subschema

	refs                 []*subschema // targets of $ref and $dynamicRef
	allOf, anyOf, oneOf  []*subschema
	not                  *subschema
	ifs, then, otherwise *subschema

	// here holds the schemas that apply to the same value, and below those that apply to parts of
	// the value.
	here, below []*subschema
	weight      int // the work of this schema alone, per value and 64 bytes of its text
	more        extraWork
	total       int     // an upper bound of the work with all subschemas; maxWork if it recurs
	admitted    typeSet // the types that a valid value can have
}

// patternRule is one member of patternProperties.
type patternRule struct {
	pattern *pattern
	sub     *subschema
}

// dependent is a requirement on an object that contains a certain member: further members, or a
// schema.
type dependent struct {
	name  string
	needs []string
	sub   *subschema // nil for none
}

// collectHere sets the schemas that s applies to the same value.
func (s *subschema) collectHere() {
	s.here = append(s.here, s.refs...)
	s.here = appendPresent(s.here, s.not, s.ifs, s.then, s.otherwise)
	for _, subs := range [][]*subschema{s.allOf, s.anyOf, s.oneOf} {
		s.here = append(s.here, subs...)
	}
	for _, d := range s.dependents {
		s.here = appendPresent(s.here, d.sub)
	}
}

// collectBelow sets the schemas that s applies to parts of the value.
func (s *subschema) collectBelow() {
	for _, sub := range s.properties {
		s.below = append(s.below, sub)
	}
	for _, rule := range s.patternProperties {
		s.below = append(s.below, rule.sub)
	}
	s.below = append(s.below, s.prefixItems...)
	s.below = appendPresent(s.below, s.additionalProperties, s.items, s.contains,
		s.propertyNames, s.unevaluatedItems, s.unevaluatedProperties)
}

// appendPresent appends the schemas that are not nil.
func appendPresent(all []*subschema, more ...*subschema) []*subschema {
	for _, s := range more {
		if s != nil {
			all = append(all, s)
		}
	}
	return all
}

// itemSchema returns the schema of an array's item i, or nil if the item may be anything.
func (s *subschema) itemSchema(i int) *subschema {
	if i < len(s.prefixItems) {
		return s.prefixItems[i]
	}
	return s.items
}

// furtherMembers returns the schema of members that properties and patternProperties do not
// name, or nil if it is absent, true or false.
func (s *subschema) furtherMembers() *subschema {
	if rest := s.additionalProperties; rest != nil && rest.always == nil {
		return rest
	}
	return nil
}

// partSchemas returns the schemas that s applies to part i of a value.
func (s *subschema) partSchemas(n *node, i int) []*subschema {
	switch n.kind {
	case objectKind:
		return s.memberSchemas(n.keys[i])
	case arrayKind:
		return appendPresent(nil, s.itemSchema(i), s.contains, s.unevaluatedItems)
	default:
		return nil
	}
}

// memberSchemas returns the schemas that s applies to the member with a name.
func (s *subschema) memberSchemas(name string) []*subschema {
	own, isKnown := s.properties[name]
	subs := appendPresent(nil, own)
	for _, rule := range s.patternProperties {
		if rule.pattern.MatchString(name) {
			subs = append(subs, rule.sub)
			isKnown = true
		}
	}
	if !isKnown {
		subs = appendPresent(subs, s.furtherMembers())
	}
	return appendPresent(subs, s.unevaluatedProperties)
}

// description returns the value of the keyword "description", or "" without it.
func (s *subschema) description() string {
	if text := s.node.member("description"); text != nil && text.kind == textKind {
		return text.text
	}
	return ""
}
