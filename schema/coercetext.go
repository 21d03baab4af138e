package schema

import "strings"

// words maps strings to the values that they mean if a value of that type is required.
var words = map[string]struct {
	types typeSet
	value *node
}{
	"true": {wantsBoolean, isTrue}, "yes": {wantsBoolean, isTrue},
	"false": {wantsBoolean, isFalse}, "no": {wantsBoolean, isFalse},
	"null": {wantsNull, null}, "none": {wantsNull, null},
}

// coerceText reads a string as one of the required types.
func (k *coercer) coerceText(n *node, types typeSet) *node {
	text := strings.TrimSpace(n.text)
	if types.has(wantsArray|wantsObject) && text != "" && (text[0] == '[' || text[0] == '{') {
		return k.decodeText(n, text, types)
	}
	if len(text) > maxDigits {
		return n
	}
	if types.has(wantsInteger|wantsNumber) && numberText.MatchString(text) {
		if literal, ok := parseNumber(text, !types.has(wantsNumber)); ok {
			return newNumber(literal)
		}
		return n
	}

	word, ok := words[strings.ToLower(text)]
	if ok && types.has(word.types) {
		return word.value
	}
	return n
}

// decodeText reads a string as a JSON array or object.
func (k *coercer) decodeText(n *node, text string, types typeSet) *node {
	decoded, err := decode([]byte(text), valueBounds)
	if err != nil || !types.admits(decoded) {
		return n
	}
	k.left -= decoded.size
	return decoded
}

// findMember returns the member of an enumeration that a value means: the value itself, or the only
// member that it spells in a different case or as a string.
func findMember(n *node, members []*node) *node {
	var found *node
	for _, member := range members {
		if member.kind == arrayKind || member.kind == objectKind {
			continue
		}
		if member.kind == n.kind && member.text == n.text && len(n.kids) == 0 {
			return n
		}
		if !spells(n, member) {
			continue
		}
		if found != nil {
			return n
		}
		found = member
	}

	if found == nil {
		return n
	}
	return found
}

// spells reports whether a value is another spelling of a scalar.
func spells(n, member *node) bool {
	switch {
	case n.kind == textKind:
		return strings.EqualFold(strings.TrimSpace(n.text), strings.TrimSpace(member.text))
	case n.kind == numberKind && member.kind == numberKind:
		a, ok := parseInteger(n.text)
		b, alsoOK := parseInteger(member.text)
		return ok && alsoOK && a == b
	case n.kind == numberKind && member.kind == textKind:
		return n.text == member.text
	default:
		return false
	}
}
