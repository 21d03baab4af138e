package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// oldDraft is the older of the two dialects.
const oldDraft = "json-schema.org/draft-07/schema"

// drafts lists the dialects that "$schema" may name.
var drafts = []string{
	"json-schema.org/draft/2020-12/schema", oldDraft,
}

// checkDocument rejects schemas that constrain nothing, and unsupported dialects.
func checkDocument(document *node) error {
	if document.kind == boolKind {
		return nil
	}
	if document.kind != objectKind {
		return fmt.Errorf("a schema must be an object, true or false, not %s",
			clip(string(document.appendJSON(nil)), 40))
	}
	if err := checkDialect(document); err != nil {
		return err
	}

	if len(document.keys) > 0 && !slices.ContainsFunc(document.keys, isKeyword) {
		return fmt.Errorf("none of %s is a keyword of JSON Schema: write "+
			"{\"type\": \"object\", \"properties\": {…}} for an object with these members",
			clip(strings.Join(document.keys, ", "), 100))
	}
	return checkAnchors(document, map[string]bool{}, true)
}

// checkDialect rejects a "$schema" that this package does not support.
func checkDialect(document *node) error {
	dialect := document.member("$schema")
	if dialect == nil {
		return nil
	}

	if dialect.kind != textKind || !slices.Contains(drafts, draftName(dialect.text)) {
		return fmt.Errorf("\"$schema\" is %s: remove it, or name https://%s",
			clip(string(dialect.appendJSON(nil)), 100), strings.Join(drafts, " or http://"))
	}
	return nil
}

// draftName returns the address of a dialect without the parts that vary.
func draftName(address string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(address, "http://"), "https://")
	return strings.TrimSuffix(name, "#")
}

// isOldDraft reports whether a document is written in draft-07.
func isOldDraft(document *node) bool {
	dialect := document.member("$schema")
	return dialect != nil && draftName(dialect.text) == oldDraft
}

// checkAnchors rejects dialects below the top level, and two dynamic anchors with one name. With
// a single anchor, a "$dynamicRef" is a "$ref", whose work can be computed.
func checkAnchors(n *node, seen map[string]bool, isTop bool) error {
	for i, key := range n.keys {
		kid := n.kids[i]
		if kid.kind == textKind && key == "$schema" && !isTop {
			return errors.New("\"$schema\" is allowed only at the top level")
		}
		if kid.kind == textKind && key == "$dynamicAnchor" {
			if seen[kid.text] {
				return fmt.Errorf(
					"two \"$dynamicAnchor\" have the name %q: use \"$ref\" and \"$defs\"",
					clip(kid.text, 60),
				)
			}
			seen[kid.text] = true
		}
	}

	for _, kid := range n.kids {
		if err := checkAnchors(kid, seen, false); err != nil {
			return err
		}
	}
	return nil
}

// knownKeywords are the keywords of 2020-12 and draft-07. A document that uses none of these
// keywords is a mistake.
var knownKeywords = strings.Fields(`
	$id $schema $ref $anchor $dynamicRef $dynamicAnchor $vocabulary $comment $defs definitions
	allOf anyOf oneOf not if then else dependentSchemas dependencies
	prefixItems items additionalItems unevaluatedItems contains
	properties patternProperties additionalProperties unevaluatedProperties propertyNames
	type enum const required dependentRequired pattern format uniqueItems
	multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength
	maxItems minItems maxContains minContains maxProperties minProperties
	title description default deprecated readOnly writeOnly examples
	contentEncoding contentMediaType contentSchema`)

// isKeyword reports whether JSON Schema defines a word.
func isKeyword(word string) bool { return slices.Contains(knownKeywords, word) }
