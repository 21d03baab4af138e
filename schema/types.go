package schema

import "github.com/santhosh-tekuri/jsonschema/v6"

// typeSet is a set of the types of JSON Schema. The empty set means all types.
type typeSet uint8

const (
	wantsNull typeSet = 1 << iota
	wantsBoolean
	wantsInteger
	wantsNumber
	wantsString
	wantsArray
	wantsObject

	everyType = wantsNull | wantsBoolean | wantsInteger | wantsNumber |
		wantsString | wantsArray | wantsObject
)

var typeNames = map[string]typeSet{
	"null": wantsNull, "boolean": wantsBoolean, "integer": wantsInteger, "number": wantsNumber,
	"string": wantsString, "array": wantsArray, "object": wantsObject,
}

// has reports whether the set has one of the given types.
func (t typeSet) has(types typeSet) bool { return t&types != 0 }

// wantsOnlyIntegers reports whether a number has to be an integer.
func (t typeSet) wantsOnlyIntegers() bool { return t.has(wantsInteger) && !t.has(wantsNumber) }

// admits reports whether a value is of one of the types.
func (t typeSet) admits(n *node) bool {
	if t == 0 {
		return true
	}

	switch n.kind {
	case nullKind:
		return t.has(wantsNull)
	case boolKind:
		return t.has(wantsBoolean)
	case numberKind:
		if t.wantsOnlyIntegers() {
			_, ok := parseInteger(n.text)
			return ok
		}
		return t.has(wantsNumber)
	case textKind:
		return t.has(wantsString)
	case arrayKind:
		return t.has(wantsArray)
	default:
		return t.has(wantsObject)
	}
}

// admittedTypes returns the types that a valid value of a schema can have, as far as
// types, enumerations, references and alternatives determine them. It ignores the
// schemas in under, which are being computed.
func (c *Contract) admittedTypes(s *jsonschema.Schema, under map[*jsonschema.Schema]bool) typeSet {
	f := c.facts[s]
	if f.admitted != 0 || under[s] {
		return f.admitted
	}
	under[s] = true
	inner := func(sub *jsonschema.Schema) typeSet { return c.admittedTypes(sub, under) }

	set := ownTypes(s, f.types)
	if s.Ref != nil {
		set &= inner(s.Ref)
	}
	for _, sub := range s.AllOf {
		set &= inner(sub)
	}
	for _, subs := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(subs) > 0 {
			set &= unite(subs, inner)
		}
	}

	f.admitted = set
	return set
}

// ownTypes returns the types that the schema's own type, const and enum allow.
func ownTypes(s *jsonschema.Schema, types typeSet) typeSet {
	set := everyType
	if types != 0 {
		set = types
		if set.has(wantsNumber) {
			set |= wantsInteger
		}
	}
	if s.Const != nil {
		set &= typesOf(*s.Const)
	}
	if s.Enum != nil {
		set &= unite(s.Enum.Values, typesOf)
	}
	return set
}

// unite returns the types of several things together.
func unite[T any](all []T, typesOf func(T) typeSet) typeSet {
	var set typeSet
	for _, one := range all {
		set |= typesOf(one)
	}
	return set
}

// typesOf returns the types of a member of an enumeration.
func typesOf(value any) typeSet {
	n := scalarOf(value)
	if n == nil {
		return wantsObject | wantsArray
	}

	switch n.kind {
	case nullKind:
		return wantsNull
	case boolKind:
		return wantsBoolean
	case numberKind:
		return wantsNumber | wantsInteger
	default:
		return wantsString
	}
}
