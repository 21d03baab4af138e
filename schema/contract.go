package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Contract is a compiled schema that a value must meet. It does not change and
// is safe for concurrent use.
type Contract struct {
	root *jsonschema.Schema
	// document is the schema as it was given, members in their order.
	document *node
	facts    map[*jsonschema.Schema]*facts
	programs map[string]int // how many instructions a pattern has
}

const (
	// base is the address of every contract's document. Nothing is ever loaded
	// from it.
	base = "contract://document/schema"
	// maxSubschemas bounds the schemas in one document, references followed.
	maxSubschemas = 2_000
	maxPattern    = 1_000  // characters of one regular expression
	maxProgram    = 10_000 // instructions of one, repeats written out
	maxPrograms   = 50_000 // instructions of all in a document
)

// Compile makes a contract from a JSON Schema: an object, true or false. It
// understands 2020-12, and draft-07 if "$schema" says so. "format" is checked,
// as the vocabulary format-assertion has it. References must stay inside the
// document. The error says what to change.
func Compile(jsonSchema json.RawMessage) (*Contract, error) {
	document, err := decode(jsonSchema, schemaBounds)
	if err != nil {
		return nil, fmt.Errorf("cannot read the schema: %w", err)
	}
	if err := checkDocument(document); err != nil {
		return nil, fmt.Errorf("cannot use the schema: %w", err)
	}
	c := &Contract{document: document, programs: map[string]int{}}
	if c.root, err = c.compile(); err != nil {
		return nil, fmt.Errorf("cannot compile the schema: %w", err)
	}
	if err := c.learn(); err != nil {
		return nil, fmt.Errorf("cannot use the schema: %w", err)
	}
	return c, nil
}

// compile hands the document to the library.
func (c *Contract) compile() (root *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil { // the library states its invariants by panics
			err = fmt.Errorf("the schema broke the compiler: %v", r)
		}
	}()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	for _, format := range formats {
		compiler.RegisterFormat(format)
	}
	compiler.UseLoader(refuser{})
	engine, seal := c.regexps()
	compiler.UseRegexpEngine(engine)
	if err := compiler.AddResource(base, c.document.plain); err != nil {
		return nil, err
	}
	root, err = compiler.Compile(base)
	if err != nil {
		return nil, plainError(err)
	}
	seal()
	return root, nil
}

// plainError says what the library found in our words: without the address that
// only we know, and not longer than a model reads.
func plainError(err error) error {
	var wrong *jsonschema.SchemaValidationError
	var found *jsonschema.ValidationError
	if errors.As(err, &wrong) && errors.As(wrong.Err, &found) {
		if all := violations(found); len(all) > 0 {
			return fmt.Errorf("it is no JSON Schema: %s", all[0])
		}
	}
	text := strings.ReplaceAll(err.Error(), base, "")
	return errors.New(clip(text, 600))
}

// refuser is the loader of documents: there are none.
type refuser struct{}

func (refuser) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document; put what it says under \"$defs\"", clip(strings.TrimPrefix(url, "contract://document"), 200))
}

// regexps returns the engine for the patterns of one document: Go's, which is
// linear in the text, with bounds on what a pattern unfolds to. The library also
// asks it whether a value is of the format "regex", from all checks at the same
// time: once sealed, it remembers nothing and adds nothing up.
func (c *Contract) regexps() (engine jsonschema.RegexpEngine, seal func()) {
	known := map[string]jsonschema.Regexp{}
	total, sealed := 0, false
	engine = func(pattern string) (jsonschema.Regexp, error) {
		if sealed {
			re, _, err := compilePattern(pattern)
			return re, err
		}
		if re, ok := known[pattern]; ok {
			return re, nil
		}
		re, size, err := compilePattern(pattern)
		if err != nil {
			return nil, err
		}
		if total += size; total > maxPrograms {
			return nil, fmt.Errorf("the patterns of the schema unfold to more than %d instructions", maxPrograms)
		}
		known[pattern], c.programs[pattern] = re, size
		return re, nil
	}
	return engine, func() { sealed = true }
}

// drafts are the dialects that "$schema" may name.
var drafts = []string{"json-schema.org/draft/2020-12/schema", "json-schema.org/draft-07/schema"}

// checkDocument refuses what the library would follow out of the document, and
// schemas that say nothing.
func checkDocument(document *node) error {
	if document.kind == boolKind {
		return nil
	}
	if document.kind != objectKind {
		return fmt.Errorf("a schema is an object, true or false, not %s", clip(string(document.appendJSON(nil)), 40))
	}
	if s := document.member("$schema"); s != nil {
		name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s.text, "http://"), "https://"), "#")
		if s.kind != textKind || !slices.Contains(drafts, name) {
			return fmt.Errorf("\"$schema\" is %s: leave it out, or name https://%s", clip(string(s.appendJSON(nil)), 100), strings.Join(drafts, " or http://"))
		}
	}
	if len(document.keys) > 0 && !slices.ContainsFunc(document.keys, isKeyword) {
		return fmt.Errorf("none of %s is a keyword of JSON Schema: write {\"type\": \"object\", \"properties\": {…}} for an object with these members",
			clip(strings.Join(document.keys, ", "), 100))
	}
	return checkAnchors(document, map[string]bool{}, true)
}

// checkAnchors refuses dialects below the root, and two dynamic anchors of one
// name: with a single one a "$dynamicRef" is a "$ref", and what it costs is known.
func checkAnchors(n *node, seen map[string]bool, top bool) error {
	for i, key := range n.keys {
		kid := n.kids[i]
		if kid.kind == textKind && key == "$schema" && !top {
			return errors.New("\"$schema\" may stand at the top only")
		}
		if kid.kind == textKind && key == "$dynamicAnchor" {
			if seen[kid.text] {
				return fmt.Errorf("two \"$dynamicAnchor\" are called %q: use \"$ref\" and \"$defs\"", clip(kid.text, 60))
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

// Keywords of 2020-12 and draft-07. A document with none of them is a mistake.
var keywords = map[string]bool{}

func init() {
	for word := range strings.FieldsSeq(`
		$id $schema $ref $anchor $dynamicRef $dynamicAnchor $vocabulary $comment $defs definitions
		allOf anyOf oneOf not if then else dependentSchemas prefixItems items contains properties patternProperties
		additionalProperties additionalItems propertyNames unevaluatedItems unevaluatedProperties dependencies
		type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern
		maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required dependentRequired
		title description default deprecated readOnly writeOnly examples format contentEncoding contentMediaType contentSchema`) {
		keywords[word] = true
	}
}

func isKeyword(word string) bool { return keywords[word] }

// JSONSchema returns the contract's document as it was given, without white
// space. The caller may keep and change it.
func (c *Contract) JSONSchema() json.RawMessage {
	return c.document.appendJSON(nil)
}

// String returns the contract's document.
func (c *Contract) String() string { return string(c.JSONSchema()) }

// Parse makes a contract from what a caller or a guest gives: a JSON string
// with type text (see [FromType]) or with a JSON Schema in it, or a JSON Schema.
// Contracts that were parsed lately are kept.
func Parse(raw json.RawMessage) (*Contract, error) {
	return recent.Parse(raw)
}

func parse(raw json.RawMessage) (*Contract, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' {
		return Compile(raw)
	}
	text, err := decode(raw, schemaBounds)
	if err != nil {
		return nil, fmt.Errorf("cannot read the schema: %w", err)
	}
	if inner := strings.TrimSpace(text.text); strings.HasPrefix(inner, "{") {
		return Compile(json.RawMessage(inner))
	}
	return FromType(text.text)
}

// compilePattern compiles a regular expression and returns how many
// instructions it has.
func compilePattern(pattern string) (jsonschema.Regexp, int, error) {
	if len(pattern) > maxPattern {
		return nil, 0, fmt.Errorf("the pattern %q has %d characters, more than %d", clip(pattern, 40), len(pattern), maxPattern)
	}
	translated := translate(pattern)
	parsed, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("the pattern %q: %w (there is no look-around and no back-reference)", clip(pattern, 100), err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, 0, fmt.Errorf("the pattern %q: %w", clip(pattern, 100), err)
	}
	if len(program.Inst) > maxProgram {
		return nil, 0, fmt.Errorf("the pattern %q unfolds to %d instructions, more than %d", clip(pattern, 100), len(program.Inst), maxProgram)
	}
	re, err := regexpOf(pattern, translated)
	return re, len(program.Inst), err
}
