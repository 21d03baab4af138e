package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// coercer turns a value into what its schema asks for, if exactly one thing can be meant
// and no information is lost. It leaves other values alone; the validation that follows
// decides about them.
//
// It follows references, allOf, alternatives, properties and items. It does not follow
// conditions (not, if, then, else), because a coercion may change how they turn out.
type coercer struct {
	c    *Contract
	left int // work; without any left, values stay as they are
}

// isSpent reports whether no work is left.
func (k *coercer) isSpent() bool { return k.left <= 0 }

// coerce returns the value as a schema asks for it.
func (k *coercer) coerce(n *node, s *jsonschema.Schema) *node {
	f := k.c.facts[s]
	if k.left -= f.workOn(n); k.isSpent() || s.Bool != nil {
		return n
	}

	for _, sub := range []*jsonschema.Schema{s.Ref, dynamicTarget(s)} {
		if sub != nil {
			n = k.coerce(n, sub)
		}
	}
	for _, sub := range s.AllOf {
		n = k.coerce(n, sub)
	}
	n = k.coerceToAlternative(n, s.AnyOf)
	n = k.coerceToAlternative(n, s.OneOf)

	n = k.coerceWhole(n, s, f)
	switch n.kind {
	case objectKind:
		return k.coerceMembers(n, s, f)
	case arrayKind:
		return k.coerceItems(n, s)
	default:
		return n
	}
}

// fits reports whether a value is valid as it is.
func (k *coercer) fits(n *node, s *jsonschema.Schema) bool {
	k.left -= callWork
	found, err := k.c.validate(s, n, &k.left)
	return err == nil && found == nil
}

// coerceToAlternative coerces by the one alternative that the value fits. If it fits
// none, it is coerced if all alternatives that it can be coerced to agree on the result.
func (k *coercer) coerceToAlternative(n *node, subs []*jsonschema.Schema) *node {
	if len(subs) == 0 {
		return n
	}

	fitting := slices.DeleteFunc(slices.Clone(subs), func(sub *jsonschema.Schema) bool {
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

// coerceIfAgreed returns what all alternatives make of a value, if they agree. An
// alternative that the value cannot be coerced to does not count.
func (k *coercer) coerceIfAgreed(n *node, subs []*jsonschema.Schema) *node {
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

// coerceWhole coerces a value by the schema's own const, enum and type.
func (k *coercer) coerceWhole(n *node, s *jsonschema.Schema, f *facts) *node {
	switch {
	case s.Const != nil:
		return findMember(n, []any{*s.Const})
	case s.Enum != nil:
		return findMember(n, s.Enum.Values)
	case f.types == 0:
		return n
	}

	if n.kind == numberKind && f.types.wantsOnlyIntegers() {
		if literal, ok := parseInteger(n.text); ok && literal != n.text {
			return newNumber(literal)
		}
	}
	if f.types.admits(n) {
		return n
	}

	switch n.kind {
	case textKind:
		return k.coerceText(n, f.types)
	case numberKind:
		if f.types.has(wantsString) {
			return newText(n.text)
		}
	case objectKind:
		return k.wrapInList(n, s, f)
	default:
	}
	return n
}

// wrapInList turns a lone object into a list of one, if the list is valid. Texts and
// numbers stay: "a, b" may mean two.
func (k *coercer) wrapInList(n *node, s *jsonschema.Schema, f *facts) *node {
	if !f.types.has(wantsArray) || itemSchema(s, 0) == nil {
		return n
	}
	if list := k.coerceItems(newArray([]*node{n}), s); k.fits(list, s) {
		return list
	}
	return n
}

// coerceMembers coerces the members of an object. It leaves out a null that stands for a
// missing optional member.
func (k *coercer) coerceMembers(n *node, s *jsonschema.Schema, f *facts) *node {
	if len(s.Properties) == 0 && len(f.patterns) == 0 && s.AdditionalProperties == nil {
		return n
	}

	keys, kids := make([]string, 0, len(n.keys)), make([]*node, 0, len(n.kids))
	hasChanged := false
	for i, key := range n.keys {
		kid := n.kids[i]
		for _, sub := range k.c.partSchemas(s, f, n, i) {
			kid = k.coerce(kid, sub)
		}
		if kid.kind == nullKind && k.isOmitted(key, s, f) {
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

// isOmitted reports whether a member that is null should be left out: it is optional and
// may not be null.
func (k *coercer) isOmitted(key string, s *jsonschema.Schema, f *facts) bool {
	own := s.Properties[key]
	return own != nil && !f.required[key] && !k.fits(null, own) && !k.isSpent()
}

// coerceItems coerces the items of an array. If items have to be unique, it drops exact
// repetitions, which add nothing to a set.
func (k *coercer) coerceItems(n *node, s *jsonschema.Schema) *node {
	kids := make([]*node, 0, len(n.kids))
	hasChanged := false
	seen := map[string]bool{}
	for i, kid := range n.kids {
		if sub := itemSchema(s, i); sub != nil {
			kid = k.coerce(kid, sub)
		}
		if s.UniqueItems {
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
