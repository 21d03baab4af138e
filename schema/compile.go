package schema

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// maxSubschemas bounds the schemas in one document, counting those reached by references.
const maxSubschemas = 2_000

// compiler compiles the schemas of one document that are reachable from its root.
type compiler struct {
	document *node
	isOld    bool // draft-07
	// homes holds the objects of the document that may be schemas, with their locations.
	homes     map[*node]home
	resources map[string]*resource
	subs      map[*node]*subschema
	order     []*subschema // the compiled schemas, in order
	links     []link       // references that have not been followed yet
	patterns  map[string]*pattern
	size      int // total instructions of all patterns
}

// link is a reference from one schema to another.
type link struct {
	from *subschema
	to   string
}

// compile compiles a document that [checkDocument] accepted.
func compile(document *node) (*subschema, error) {
	if err := checkByMetaschema(document, document); err != nil {
		return nil, err
	}
	root, err := compileUnchecked(document)
	if err != nil {
		return nil, err
	}
	return root, nil
}

// compileUnchecked is compile for a document that is known to be a schema.
func compileUnchecked(document *node) (*subschema, error) {
	c := &compiler{
		document: document, isOld: isOldDraft(document),
		homes: map[*node]home{}, resources: map[string]*resource{},
		subs: map[*node]*subschema{}, patterns: map[string]*pattern{},
	}
	if err := c.findResources(); err != nil {
		return nil, err
	}
	root, err := c.compile(document, "")
	if err != nil {
		return nil, err
	}
	for len(c.links) > 0 {
		next := c.links[0]
		c.links = c.links[1:]
		if err := c.follow(next); err != nil {
			return nil, err
		}
	}

	if err := c.collectFacts(); err != nil {
		return nil, err
	}
	return root, nil
}

// collectFacts computes the facts about the schemas that later checks use.
func (c *compiler) collectFacts() error {
	for _, s := range c.order {
		s.collectHere()
		s.collectBelow()
		s.weigh()
	}
	if err := c.rejectLoops(); err != nil {
		return err
	}
	for _, s := range c.order {
		s.sumWork(map[*subschema]bool{})
		s.admitTypes(map[*subschema]bool{})
	}
	return nil
}

// weigh computes the work of the schema itself, without its subschemas.
func (s *subschema) weigh() {
	s.weight, s.more = 1+s.countNames(), newExtraWork(s)
	if s.pattern != nil {
		s.weight += s.pattern.size
	}
	if s.format != "" {
		s.weight += formatWork
		if s.format == regexFormat { // a check compiles the value
			s.weight += maxProgram / 2
		}
	}
	for _, rule := range s.patternProperties {
		s.weight += rule.pattern.size
	}
}

// compile compiles a schema and all schemas in it.
func (c *compiler) compile(n *node, at string) (*subschema, error) {
	if known := c.subs[n]; known != nil {
		return known, nil
	}
	if len(c.order) == maxSubschemas {
		return nil, fmt.Errorf("it contains more than %d schemas", maxSubschemas)
	}
	s := &subschema{node: n, at: at}
	c.subs[n] = s
	c.order = append(c.order, s)

	switch n.kind {
	case boolKind:
		always := n == isTrue
		s.always = &always
		return s, nil
	case objectKind:
	default:
		return nil, fmt.Errorf("#%s is not a schema", clip(at, 200))
	}

	k := &keywords{c: c, s: s}
	k.readLinks()
	if c.isOld && len(n.keys) > 0 && n.member("$ref") != nil {
		return s, k.err // $ref hides all other keywords
	}
	k.readValueRules()
	k.readTextRules()
	k.readArrayRules()
	k.readObjectRules()
	k.readCombinations()
	return s, k.err
}

// keywords reads the keywords of one schema. After an error, its methods have no useful effect.
type keywords struct {
	c   *compiler
	s   *subschema
	err error
}

// member returns the value of a keyword if there is one of the given kind, otherwise nil.
func (k *keywords) member(name string, want kind) *node {
	if n := k.s.node.member(name); n != nil && n.kind == want {
		return n
	}
	return nil
}

// schema compiles the schema of a keyword, or returns nil without the keyword.
func (k *keywords) schema(names ...string) *subschema {
	n, at := k.s.node, k.s.at
	for _, name := range names {
		if n = n.child(name); n == nil {
			return nil
		}
		at += "/" + escapeToken(name)
	}
	if k.err != nil {
		return nil
	}
	s, err := k.c.compile(n, at)
	k.err = err
	return s
}

// schemas compiles the list of schemas of a keyword.
func (k *keywords) schemas(name string) []*subschema {
	list := k.member(name, arrayKind)
	if list == nil {
		return nil
	}
	all := make([]*subschema, 0, len(list.kids))
	for i := range list.kids {
		all = appendPresent(all, k.schema(name, strconv.Itoa(i)))
	}
	return all
}

// number returns the number of a keyword, or nil without the keyword.
func (k *keywords) number(name string) *big.Rat {
	if n := k.member(name, numberKind); n != nil {
		return n.rational()
	}
	return nil
}

// count returns the integer of a keyword, or nil without the keyword.
func (k *keywords) count(name string) *int {
	r := k.number(name)
	if r == nil || !r.IsInt() {
		return nil
	}
	count := math.MaxInt
	if r.Num().IsInt64() {
		count = int(r.Num().Int64())
	}
	return &count
}

// textsIn returns the strings in a list.
func textsIn(list *node) []string {
	if list == nil || list.kind != arrayKind {
		return nil
	}
	var all []string
	for _, kid := range list.kids {
		if kid.kind == textKind {
			all = append(all, kid.text)
		}
	}
	return all
}

// readLinks reads the references, which are followed after everything else has been compiled.
func (k *keywords) readLinks() {
	names := []string{"$ref", "$dynamicRef"}
	if k.c.isOld {
		names = names[:1]
	}
	for _, name := range names {
		if ref := k.member(name, textKind); ref != nil {
			k.c.links = append(k.c.links, link{k.s, ref.text})
		}
	}
}

// readValueRules reads the rules for all values and for numbers.
func (k *keywords) readValueRules() {
	s := k.s
	if one := k.member("type", textKind); one != nil {
		s.types = typeNames[one.text]
	}
	for _, name := range textsIn(s.node.member("type")) {
		s.types |= typeNames[name]
	}
	s.constant = s.node.member("const")
	if list := k.member("enum", arrayKind); list != nil {
		s.enum = append([]*node{}, list.kids...)
	}
	if format := k.member("format", textKind); format != nil && formats[format.text] != nil {
		s.format = format.text
	}

	s.multipleOf = k.number("multipleOf")
	s.minimum, s.exclusiveMinimum = k.number("minimum"), k.number("exclusiveMinimum")
	s.maximum, s.exclusiveMaximum = k.number("maximum"), k.number("exclusiveMaximum")
}

// readTextRules reads the rules for strings.
func (k *keywords) readTextRules() {
	k.s.minLength, k.s.maxLength = k.count("minLength"), k.count("maxLength")
	if text := k.member("pattern", textKind); text != nil {
		k.s.pattern = k.pattern(text.text)
	}
}

// pattern compiles a pattern, once per document.
func (k *keywords) pattern(text string) *pattern {
	if known := k.c.patterns[text]; known != nil || k.err != nil {
		return known
	}
	p, err := compilePattern(text)
	if err != nil {
		k.err = err
		return nil
	}
	if k.c.size += p.size; k.c.size > maxPrograms {
		k.err = fmt.Errorf(
			"the patterns of the schema expand to more than %d instructions", maxPrograms)
	}
	k.c.patterns[text] = p
	return p
}

// readArrayRules reads the rules for arrays. In draft-07, the keywords items and additionalItems
// mean what prefixItems and items mean in 2020-12.
func (k *keywords) readArrayRules() {
	s := k.s
	s.minItems, s.maxItems = k.count("minItems"), k.count("maxItems")
	if unique := k.member("uniqueItems", boolKind); unique != nil {
		s.uniqueItems = unique == isTrue
	}
	s.contains = k.schema("contains")

	switch {
	case !k.c.isOld:
		s.prefixItems, s.items = k.schemas("prefixItems"), k.schema("items")
		s.minContains, s.maxContains = k.count("minContains"), k.count("maxContains")
		s.unevaluatedItems = k.schema("unevaluatedItems")
	case k.member("items", arrayKind) != nil:
		s.prefixItems, s.items = k.schemas("items"), k.schema("additionalItems")
	default:
		s.items = k.schema("items")
	}
}

// readObjectRules reads the rules for objects.
func (k *keywords) readObjectRules() {
	s := k.s
	s.minProperties, s.maxProperties = k.count("minProperties"), k.count("maxProperties")
	s.required = textsIn(s.node.member("required"))
	s.requires = make(map[string]bool, len(s.required))
	for _, name := range s.required {
		s.requires[name] = true
	}

	if members := k.member("properties", objectKind); members != nil {
		s.properties = make(map[string]*subschema, len(members.keys))
		for _, name := range members.keys {
			s.properties[name] = k.schema("properties", name)
		}
	}
	if members := k.member("patternProperties", objectKind); members != nil {
		for _, text := range members.keys {
			rule := patternRule{k.pattern(text), k.schema("patternProperties", text)}
			s.patternProperties = append(s.patternProperties, rule)
		}
	}
	s.additionalProperties = k.schema("additionalProperties")
	s.propertyNames = k.schema("propertyNames")

	k.readDependents("dependencies")
	if !k.c.isOld {
		k.readDependents("dependentSchemas")
		k.readDependents("dependentRequired")
		s.unevaluatedProperties = k.schema("unevaluatedProperties")
	}
}

// readDependents reads a keyword that maps members to names or schemas.
func (k *keywords) readDependents(keyword string) {
	members := k.member(keyword, objectKind)
	if members == nil {
		return
	}
	for i, name := range members.keys {
		d := dependent{name: name}
		if members.kids[i].kind == arrayKind {
			d.needs = textsIn(members.kids[i])
		} else {
			d.sub = k.schema(keyword, name)
		}
		k.s.dependents = append(k.s.dependents, d)
	}
}

// readCombinations reads the rules that combine other schemas.
func (k *keywords) readCombinations() {
	s := k.s
	s.allOf, s.anyOf, s.oneOf = k.schemas("allOf"), k.schemas("anyOf"), k.schemas("oneOf")
	s.not = k.schema("not")
	if s.ifs = k.schema("if"); s.ifs != nil {
		s.then, s.otherwise = k.schema("then"), k.schema("else")
	}
}

// mark is the state of a schema in the search for loops.
type mark int

const (
	unseen mark = iota
	open
	done
)

// rejectLoops rejects schemas that apply themselves to the same value. They constrain nothing,
// and following them would never end.
func (c *compiler) rejectLoops() error {
	marks := map[*subschema]mark{}
	for _, s := range c.order {
		if err := s.rejectLoop(marks); err != nil {
			return err
		}
	}
	return nil
}

// rejectLoop rejects a schema that leads back to itself.
func (s *subschema) rejectLoop(marks map[*subschema]mark) error {
	switch marks[s] {
	case done:
		return nil
	case open:
		return fmt.Errorf("the schema at #%s refers to itself in an endless loop", clip(s.at, 200))
	case unseen:
	}

	marks[s] = open
	for _, sub := range s.here {
		if err := sub.rejectLoop(marks); err != nil {
			return err
		}
	}
	marks[s] = done
	return nil
}
