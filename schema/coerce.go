package schema

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// coercer turns a value into what its schema asks for, where exactly one thing
// can be meant and nothing is lost. What it cannot improve it leaves alone; the
// validation that follows decides.
//
// It looks into references, allOf, alternatives, properties and items; not into
// conditions (not, if, then, else), which may come out otherwise afterwards.
type coercer struct {
	c    *Contract
	left int // work; without any the value stays as it is
}

func (k *coercer) spent() bool { return k.left <= 0 }

func (k *coercer) value(n *node, s *jsonschema.Schema) *node {
	f := k.c.facts[s]
	if k.left -= f.weight * n.own; k.spent() || s.Bool != nil {
		return n
	}
	for _, sub := range []*jsonschema.Schema{s.Ref, dynamic(s)} {
		if sub != nil {
			n = k.value(n, sub)
		}
	}
	for _, sub := range s.AllOf {
		n = k.value(n, sub)
	}
	n = k.alternatives(n, s.AnyOf)
	n = k.alternatives(n, s.OneOf)
	n = k.single(n, s, f)
	switch n.kind {
	case objectKind:
		return k.object(n, s, f)
	case arrayKind:
		return k.array(n, s)
	default:
		return n
	}
}

func dynamic(s *jsonschema.Schema) *jsonschema.Schema {
	if s.DynamicRef == nil {
		return nil
	}
	return s.DynamicRef.Ref
}

// fits reports whether a value is valid as it is.
func (k *coercer) fits(n *node, s *jsonschema.Schema) bool {
	found, err := k.c.validate(s, n, &k.left)
	return err == nil && found == nil
}

// alternatives coerces by the one alternative that the value fits. If it fits
// none, it is coerced if all alternatives that it can be coerced for make the
// same of it.
func (k *coercer) alternatives(n *node, subs []*jsonschema.Schema) *node {
	if len(subs) == 0 {
		return n
	}
	exact := slices.DeleteFunc(slices.Clone(subs), func(sub *jsonschema.Schema) bool { return !k.fits(n, sub) })
	if len(exact) > 0 {
		if len(exact) > 1 {
			return n
		}
		return k.value(n, exact[0])
	}
	var found *node
	var text string
	for _, sub := range subs {
		made := k.value(n, sub)
		if made == n || !k.fits(made, sub) {
			continue
		}
		same := string(made.appendJSON(nil))
		if found != nil && same != text {
			return n
		}
		found, text = made, same
	}
	if found == nil {
		return n
	}
	return found
}

// single coerces a value as a whole, by the schema's own enum, const and type.
func (k *coercer) single(n *node, s *jsonschema.Schema, f *facts) *node {
	if s.Const != nil {
		return oneOf(n, []any{*s.Const})
	}
	if s.Enum != nil {
		return oneOf(n, s.Enum.Values)
	}
	if f.types == 0 {
		return n
	}
	if n.kind == numberKind && f.types&wantsInteger != 0 && f.types&wantsNumber == 0 {
		if literal, ok := whole(n.text); ok {
			if literal != n.text {
				return newNumber(literal)
			}
			return n
		}
	}
	if f.types.admits(n) {
		return n
	}
	switch n.kind {
	case textKind:
		return k.ofText(n, f.types)
	case numberKind:
		if f.types&wantsString != 0 {
			return newText(n.text)
		}
	case objectKind:
		return k.listOfOne(n, s, f)
	default:
	}
	return n
}

// listOfOne takes a lone object for the only item of a list of objects. Texts
// and numbers are left alone: "a, b" may mean two.
func (k *coercer) listOfOne(n *node, s *jsonschema.Schema, f *facts) *node {
	if f.types&wantsArray == 0 || itemSchema(s, 0) == nil {
		return n
	}
	if list := k.array(newArray([]*node{n}), s); k.fits(list, s) {
		return list
	}
	return n
}

var (
	integerText = regexp.MustCompile(`^[+-]?[0-9]+$`)
	numberText  = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// ofText reads a text as one of the types that are wanted.
func (k *coercer) ofText(n *node, types typeSet) *node {
	text := strings.TrimSpace(n.text)
	if types&(wantsArray|wantsObject) != 0 && text != "" && (text[0] == '[' || text[0] == '{') {
		made, err := decode([]byte(text), valueBounds)
		if err != nil || !types.admits(made) {
			return n
		}
		k.left -= made.size
		return made
	}
	if len(text) > maxDigits {
		return n
	}
	if types&(wantsInteger|wantsNumber) != 0 && numberText.MatchString(text) {
		if literal, ok := numeral(text, types&wantsNumber == 0); ok {
			return newNumber(literal)
		}
		return n
	}
	switch word := strings.ToLower(text); {
	case types&wantsBoolean != 0 && (word == "true" || word == "yes"):
		return isTrue
	case types&wantsBoolean != 0 && (word == "false" || word == "no"):
		return isFalse
	case types&wantsNull != 0 && (word == "null" || word == "none"):
		return null
	}
	return n
}

// numeral returns the JSON literal of a number in a text.
func numeral(text string, integer bool) (string, bool) {
	if badNumber(strings.TrimPrefix(text, "+")) != "" {
		return "", false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return "", false
	}
	if r.IsInt() && (integer || integerText.MatchString(text)) {
		return r.Num().String(), true
	}
	if integer {
		return "", false
	}
	// The literal stays as it was written, but for what JSON does not allow.
	sign, digits := "", strings.TrimPrefix(text, "+")
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" || digits[0] < '0' || digits[0] > '9' {
		digits = "0" + digits
	}
	for _, end := range []string{"e", "E"} {
		digits = strings.Replace(digits, "."+end, end, 1)
	}
	return sign + strings.TrimSuffix(digits, "."), true
}

// oneOf returns the member of an enumeration that is meant: the value itself, or
// the only one that it spells in another case or as a text.
func oneOf(n *node, members []any) *node {
	var found *node
	for _, member := range members {
		made := fromPlain(member)
		if made == nil {
			continue
		}
		if made.kind == n.kind && made.text == n.text && len(n.kids) == 0 && len(made.kids) == 0 {
			return n
		}
		if !spells(n, made) {
			continue
		}
		if found != nil {
			return n
		}
		found = made
	}
	if found == nil {
		return n
	}
	return found
}

// fromPlain returns a scalar as a node, nil for arrays and objects.
func fromPlain(value any) *node {
	switch v := value.(type) {
	case nil:
		return null
	case bool:
		return newBool(v)
	case string:
		return newText(v)
	case interface{ String() string }: // json.Number
		return newNumber(v.String())
	}
	return nil
}

// spells reports whether a value says a scalar in other letters.
func spells(n, member *node) bool {
	switch {
	case n.kind == textKind:
		return strings.EqualFold(strings.TrimSpace(n.text), strings.TrimSpace(member.text))
	case n.kind == numberKind && member.kind == numberKind:
		a, ok := whole(n.text)
		b, fine := whole(member.text)
		return ok && fine && a == b
	case n.kind == numberKind && member.kind == textKind:
		return n.text == member.text
	default:
		return false
	}
}

// object coerces the members, and leaves out a null that says that an optional
// member is not there.
func (k *coercer) object(n *node, s *jsonschema.Schema, f *facts) *node {
	if len(s.Properties) == 0 && len(f.patterns) == 0 && s.AdditionalProperties == nil {
		return n
	}
	keys, kids := make([]string, 0, len(n.keys)), make([]*node, 0, len(n.kids))
	changed := false
	for i, key := range n.keys {
		kid := n.kids[i]
		for _, sub := range k.c.subschemas(s, f, n, i) {
			kid = k.value(kid, sub)
		}
		own := s.Properties[key]
		if kid.kind == nullKind && own != nil && !slices.Contains(s.Required, key) && !k.fits(null, own) && !k.spent() {
			changed = true
			continue
		}
		changed = changed || kid != n.kids[i]
		keys, kids = append(keys, key), append(kids, kid)
	}
	if !changed {
		return n
	}
	return newObject(keys, kids)
}

// array coerces the items. Where they have to be unique it is a set, and an
// exact repetition adds nothing.
func (k *coercer) array(n *node, s *jsonschema.Schema) *node {
	kids := make([]*node, 0, len(n.kids))
	changed := false
	seen := map[string]bool{}
	for i, kid := range n.kids {
		if sub := itemSchema(s, i); sub != nil {
			kid = k.value(kid, sub)
		}
		if s.UniqueItems {
			text := string(kid.appendJSON(nil))
			if seen[text] {
				changed = true
				continue
			}
			seen[text] = true
		}
		changed = changed || kid != n.kids[i]
		kids = append(kids, kid)
	}
	if !changed {
		return n
	}
	return newArray(kids)
}
