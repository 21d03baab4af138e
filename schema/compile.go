package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// baseURL is the address of every contract's document. Nothing is ever loaded from it.
const baseURL = "contract://document/schema"

// compile compiles the document with the library.
func (c *Contract) compile() (root *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics if its invariants break
			err = fmt.Errorf("the schema broke the compiler: %v", r)
		}
	}()

	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	for _, format := range formats {
		compiler.RegisterFormat(format)
	}
	compiler.UseLoader(noLoader{})
	patterns := &patternEngine{contract: c, known: map[string]jsonschema.Regexp{}}
	compiler.UseRegexpEngine(patterns.compile)

	if err := compiler.AddResource(baseURL, c.document.plain); err != nil {
		return nil, err
	}
	root, err = compiler.Compile(baseURL)
	if err != nil {
		return nil, rewordCompileError(err)
	}
	patterns.isSealed = true
	return root, nil
}

// rewordCompileError reports what the library found in the words of this package: without
// the internal address, and not longer than a model reads.
func rewordCompileError(err error) error {
	var wrong *jsonschema.SchemaValidationError
	var found *jsonschema.ValidationError
	if errors.As(err, &wrong) && errors.As(wrong.Err, &found) {
		if all := listViolations(found); len(all) > 0 {
			return fmt.Errorf("it is not a JSON Schema: %s", all[0])
		}
	}

	text := strings.ReplaceAll(err.Error(), baseURL, "")
	return errors.New(clip(text, 600))
}

// noLoader refuses to load documents.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	name := clip(strings.TrimPrefix(url, "contract://document"), 200)
	return nil, fmt.Errorf(
		"it refers to another document, %s: copy that schema into \"$defs\"", name)
}

// drafts are the dialects that "$schema" may name.
var drafts = []string{
	"json-schema.org/draft/2020-12/schema", "json-schema.org/draft-07/schema",
}

// checkDocument rejects schemas that constrain nothing, and references that the library
// would follow out of the document.
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

// checkDialect rejects a "$schema" that this package does not understand.
func checkDialect(document *node) error {
	dialect := document.member("$schema")
	if dialect == nil {
		return nil
	}

	name := strings.TrimPrefix(strings.TrimPrefix(dialect.text, "http://"), "https://")
	name = strings.TrimSuffix(name, "#")
	if dialect.kind != textKind || !slices.Contains(drafts, name) {
		return fmt.Errorf("\"$schema\" is %s: remove it, or name https://%s",
			clip(string(dialect.appendJSON(nil)), 100), strings.Join(drafts, " or http://"))
	}
	return nil
}

// checkAnchors rejects dialects below the top, and two dynamic anchors of one name. With
// a single anchor a "$dynamicRef" is a "$ref", whose work can be computed.
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

// keywords are those of 2020-12 and draft-07. A document without any is a mistake.
var keywords = strings.Fields(`
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
func isKeyword(word string) bool { return slices.Contains(keywords, word) }
