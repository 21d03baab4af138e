package schema

import "slices"

// dataKeywords lists the keywords that contain values, not schemas.
var dataKeywords = []string{"const", "enum", "default", "example", "examples"}

// rewriteNullable replaces OpenAPI 3.0's "nullable": true next to a "type" with JSON Schema's
// equivalent: null becomes one of the types, and one of the values of "enum". It returns n itself
// if there is nothing to replace.
func rewriteNullable(n *node) *node {
	if len(n.kids) == 0 {
		return n
	}

	keys, kids := n.keys, slices.Clone(n.kids)
	isNew := false
	for i, kid := range n.kids {
		if n.kind == objectKind && slices.Contains(dataKeywords, n.keys[i]) {
			continue
		}
		kids[i] = rewriteNullable(kid)
		isNew = isNew || kids[i] != kid
	}
	if n.kind == arrayKind {
		if isNew {
			return newArray(kids)
		}
		return n
	}

	kind := n.member("type")
	if n.member("nullable") == isTrue && kind != nil && kind.kind == textKind {
		isNew = true
		for i, key := range keys {
			switch {
			case key == "type" && kind.text != "null":
				kids[i] = newArray([]*node{kind, newText("null")})
			case key == "enum" && kids[i].kind == arrayKind && !slices.ContainsFunc(kids[i].kids, isNull):
				kids[i] = newArray(append(slices.Clone(kids[i].kids), null))
			}
		}
		at := slices.Index(keys, "nullable")
		keys, kids = slices.Delete(slices.Clone(keys), at, at+1), slices.Delete(kids, at, at+1)
	}
	if !isNew {
		return n
	}
	return newObject(keys, kids)
}

func isNull(n *node) bool { return n.kind == nullKind }
