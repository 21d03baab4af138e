package schema

import "slices"

// coercer turns a value into the form that its schema requires, if the meaning is unambiguous and
// no information is lost. It does not change other values; the subsequent validation judges them.
//
// It follows references, allOf, alternatives, properties and items. It does not follow
// conditions (not, if, then, else), because a coercion may change their outcome.
type coercer struct {
	left int // remaining work; if it is 0, values are not coerced
}

// isSpent reports whether no work is left.
func (k *coercer) isSpent() bool { return k.left <= 0 }

// coerce returns the value in the form that a schema requires.
func (k *coercer) coerce(n *node, s *subschema) *node {
	if k.left -= s.workOn(n); k.isSpent() || s.always != nil {
		return n
	}

	for _, sub := range s.refs {
		n = k.coerce(n, sub)
	}
	for _, sub := range s.allOf {
		n = k.coerce(n, sub)
	}
	n = k.coerceToAlternative(n, s.anyOf)
	n = k.coerceToAlternative(n, s.oneOf)

	n = k.coerceWhole(n, s)
	switch n.kind {
	case objectKind:
		return k.coerceMembers(n, s)
	case arrayKind:
		return k.coerceItems(n, s)
	default:
		return n
	}
}

// fits reports whether a value is valid without coercion.
func (k *coercer) fits(n *node, s *subschema) bool {
	k.left -= callWork
	found, err := validate(s, n, &k.left)
	return err == nil && found == nil
}

// coerceToAlternative coerces a value to the one alternative that it fits. A value that fits none
// is coerced if all alternatives to which it can be coerced agree on the result.
func (k *coercer) coerceToAlternative(n *node, subs []*subschema) *node {
	if len(subs) == 0 {
		return n
	}

	fitting := slices.DeleteFunc(slices.Clone(subs), func(sub *subschema) bool {
		return !k.fits(n, sub)
	})
	switch len(fitting) {
	case 0:
		return k.coerceIfAgreed(n, subs)
	case 1:
		return k.coerce(n, fitting[0])
	default:
		return n
	}
}

// coerceIfAgreed returns the result of coercing a value to each alternative, if they agree. It
// ignores alternatives to which the value cannot be coerced.
func (k *coercer) coerceIfAgreed(n *node, subs []*subschema) *node {
	var agreed *node
	var agreedText string
	for _, sub := range subs {
		coerced := k.coerce(n, sub)
		if coerced == n || !k.fits(coerced, sub) {
			continue
		}
		k.left -= coerced.size
		text := string(coerced.appendJSON(nil))
		if agreed != nil && text != agreedText {
			return n
		}
		agreed, agreedText = coerced, text
	}

	if agreed == nil {
		return n
	}
	return agreed
}

// coerceWhole coerces a value according to the schema's own const, enum and type.
func (k *coercer) coerceWhole(n *node, s *subschema) *node {
	switch {
	case s.constant != nil:
		return findMember(n, []*node{s.constant})
	case s.enum != nil:
		return findMember(n, s.enum)
	case s.types == 0:
		return n
	}

	if n.kind == numberKind && s.types.wantsOnlyIntegers() {
		if literal, ok := parseInteger(n.text); ok && literal != n.text {
			return newNumber(literal)
		}
	}
	if s.types.admits(n) {
		return n
	}

	switch n.kind {
	case textKind:
		return k.coerceText(n, s.types)
	case numberKind:
		if s.types.has(wantsString) {
			return newText(n.text)
		}
	case objectKind:
		return k.wrapInList(n, s)
	default:
	}
	return n
}

// wrapInList turns a lone object into a list of one, if that list is valid. It does not wrap
// strings and numbers, because "a, b" may mean two items.
func (k *coercer) wrapInList(n *node, s *subschema) *node {
	if !s.types.has(wantsArray) || s.itemSchema(0) == nil {
		return n
	}
	if list := k.coerceItems(newArray([]*node{n}), s); k.fits(list, s) {
		return list
	}
	return n
}

// coerceMembers coerces the members of an object. It drops a null that stands for a missing
// optional member.
func (k *coercer) coerceMembers(n *node, s *subschema) *node {
	if len(s.properties) == 0 && len(s.patternProperties) == 0 && s.additionalProperties == nil {
		return n
	}

	keys, kids := make([]string, 0, len(n.keys)), make([]*node, 0, len(n.kids))
	hasChanged := false
	for i, key := range n.keys {
		kid := n.kids[i]
		for _, sub := range s.partSchemas(n, i) {
			kid = k.coerce(kid, sub)
		}
		if kid.kind == nullKind && k.isOmitted(key, s) {
			hasChanged = true
			continue
		}
		hasChanged = hasChanged || kid != n.kids[i]
		keys, kids = append(keys, key), append(kids, kid)
	}

	if !hasChanged {
		return n
	}
	return newObject(keys, kids)
}

// isOmitted reports whether a null member should be dropped, because it is optional and must not be
// null.
func (k *coercer) isOmitted(key string, s *subschema) bool {
	own := s.properties[key]
	return own != nil && !s.requires[key] && !k.fits(null, own) && !k.isSpent()
}

// coerceItems coerces the items of an array. If items must be unique, it drops exact
// repetitions, which add nothing to a set.
func (k *coercer) coerceItems(n *node, s *subschema) *node {
	kids := make([]*node, 0, len(n.kids))
	hasChanged := false
	seen := map[string]bool{}
	for i, kid := range n.kids {
		if sub := s.itemSchema(i); sub != nil {
			kid = k.coerce(kid, sub)
		}
		if s.uniqueItems {
			text := string(kid.appendJSON(nil))
			if seen[text] {
				hasChanged = true
				continue
			}
			seen[text] = true
		}
		hasChanged = hasChanged || kid != n.kids[i]
		kids = append(kids, kid)
	}

	if !hasChanged {
		return n
	}
	return newArray(kids)
}
