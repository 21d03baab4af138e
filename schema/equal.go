package schema

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// rational returns the exact value of a number.
func (n *node) rational() *big.Rat {
	r, ok := new(big.Rat).SetString(n.text)
	if !ok { // cannot happen for a JSON number
		return new(big.Rat)
	}
	return r
}

// equals reports whether two values are equal in JSON Schema: 1 equals 1.0, and the order of
// members is irrelevant.
func (n *node) equals(other *node) bool {
	if n == other {
		return true
	}
	if n.kind != other.kind || len(n.kids) != len(other.kids) {
		return false
	}

	switch n.kind {
	case numberKind:
		return n.text == other.text || n.rational().Cmp(other.rational()) == 0
	case arrayKind:
		return slices.EqualFunc(n.kids, other.kids, (*node).equals)
	case objectKind:
		for i, key := range n.keys {
			if kid := other.member(key); kid == nil || !n.kids[i].equals(kid) {
				return false
			}
		}
		return true
	default:
		return n.text == other.text
	}
}

// findRepeated returns the indexes of the first two equal items.
func findRepeated(items []*node) (pair [2]int, found bool) {
	if len(items) <= maxPairs {
		for j := range items {
			for i := range j {
				if items[i].equals(items[j]) {
					return [2]int{i, j}, true
				}
			}
		}
		return pair, false
	}

	seen := make(map[string]int, len(items))
	for j, item := range items {
		key := string(item.appendKey(nil))
		if i, isKnown := seen[key]; isKnown {
			return [2]int{i, j}, true
		}
		seen[key] = j
	}
	return pair, false
}

// appendKey appends bytes that are the same only for equal values.
func (n *node) appendKey(b []byte) []byte {
	switch n.kind {
	case numberKind:
		if digits, ok := parseInteger(n.text); ok {
			return append(b, digits...)
		}
		return append(b, n.rational().RatString()...)
	case textKind:
		return strconv.AppendQuote(b, n.text)
	case arrayKind:
		b = append(b, '[')
		for _, kid := range n.kids {
			b = append(kid.appendKey(b), ',')
		}
		return append(b, ']')
	case objectKind:
		order := make([]int, len(n.keys))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int { return strings.Compare(n.keys[i], n.keys[j]) })

		b = append(b, '{')
		for _, i := range order {
			b = append(strconv.AppendQuote(b, n.keys[i]), ':')
			b = append(n.kids[i].appendKey(b), ',')
		}
		return append(b, '}')
	default:
		return append(b, n.text...)
	}
}
