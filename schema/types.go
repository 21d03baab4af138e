package schema

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

// has reports whether the set contains one of the given types.
func (t typeSet) has(types typeSet) bool { return t&types != 0 }

// wantsOnlyIntegers reports whether a number must be an integer.
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

// names returns the names of the types, as messages show them.
func (t typeSet) names() []string {
	var names []string
	for _, name := range []string{
		"null", "boolean", "number", "integer", "string", "array", "object",
	} {
		if t.has(typeNames[name]) {
			names = append(names, name)
		}
	}
	return names
}

// admitTypes sets the types that a valid value of a schema can have, as far as types, enumerations,
// references and alternatives determine them. It ignores the schemas in under, whose types are
// being computed.
func (s *subschema) admitTypes(under map[*subschema]bool) typeSet {
	if s.admitted != 0 || under[s] {
		return s.admitted
	}
	under[s] = true
	inner := func(sub *subschema) typeSet { return sub.admitTypes(under) }

	set := s.ownTypes()
	for _, subs := range [][]*subschema{s.refs, s.allOf} {
		for _, sub := range subs {
			set &= inner(sub)
		}
	}
	for _, subs := range [][]*subschema{s.anyOf, s.oneOf} {
		if len(subs) > 0 {
			set &= unite(subs, inner)
		}
	}

	s.admitted = set
	return set
}

// ownTypes returns the types that the schema's own type, const and enum allow.
func (s *subschema) ownTypes() typeSet {
	set := everyType
	if s.types != 0 {
		set = s.types
		if set.has(wantsNumber) {
			set |= wantsInteger
		}
	}
	if s.constant != nil {
		set &= typesOf(s.constant)
	}
	if s.enum != nil {
		set &= unite(s.enum, typesOf)
	}
	return set
}

// unite returns the union of several types.
func unite[T any](all []T, typesOf func(T) typeSet) typeSet {
	var set typeSet
	for _, one := range all {
		set |= typesOf(one)
	}
	return set
}

// typesOf returns the types of a member of an enumeration.
func typesOf(n *node) typeSet {
	switch n.kind {
	case nullKind:
		return wantsNull
	case boolKind:
		return wantsBoolean
	case numberKind:
		return wantsNumber | wantsInteger
	case textKind:
		return wantsString
	default:
		return wantsObject | wantsArray
	}
}
