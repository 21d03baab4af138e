package schema

import "github.com/santhosh-tekuri/jsonschema/v6"

const everyType = wantsNull | wantsBoolean | wantsInteger | wantsNumber | wantsString | wantsArray | wantsObject

// admits computes which types a value can have that is valid for s, as far as
// types, enumerations, references and alternatives say it.
func (c *Contract) admits(s *jsonschema.Schema, under map[*jsonschema.Schema]bool) typeSet {
	f := c.facts[s]
	if f.admitted != 0 || under[s] {
		return f.admitted
	}
	under[s] = true
	set := everyType
	if f.types != 0 {
		set = f.types
		if set&wantsNumber != 0 {
			set |= wantsInteger
		}
	}
	if s.Const != nil {
		set &= typesOf(*s.Const)
	}
	if s.Enum != nil {
		set &= union(s.Enum.Values, typesOf)
	}
	inner := func(sub *jsonschema.Schema) typeSet { return c.admits(sub, under) }
	if s.Ref != nil {
		set &= inner(s.Ref)
	}
	for _, sub := range s.AllOf {
		set &= inner(sub)
	}
	for _, subs := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(subs) > 0 {
			set &= union(subs, inner)
		}
	}
	f.admitted = set
	return set
}

func union[T any](all []T, types func(T) typeSet) typeSet {
	var set typeSet
	for _, one := range all {
		set |= types(one)
	}
	return set
}

// typesOf returns the types of a value of an enumeration.
func typesOf(value any) typeSet {
	n := fromPlain(value)
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
