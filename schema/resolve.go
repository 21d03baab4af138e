package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// resource is a schema with a separate address: the document, or a part with an "$id".
type resource struct {
	node    *node
	at      string
	address *url.URL
	anchors map[string]*node
}

// home is the resource to which a schema belongs, and the JSON pointer of the schema.
type home struct {
	resource *resource
	at       string
	// isUnchecked means that the metaschema of the draft ignores the place, so nothing has checked
	// that it holds a schema.
	isUnchecked bool
}

// documentAddress is the address of every document without an "$id". Nothing is ever loaded from
// this address.
const documentAddress = "contract://document/schema"

// findResources finds the addresses and anchors in the document.
func (c *compiler) findResources() error {
	address, err := url.Parse(documentAddress)
	if err != nil {
		return err
	}
	root := &resource{node: c.document, address: address, anchors: map[string]*node{}}
	c.resources[documentAddress] = root
	return c.scan(c.document, home{resource: root})
}

// scan records a schema and the schemas in it.
func (c *compiler) scan(n *node, at home) error {
	if _, isKnown := c.homes[n]; isKnown || n.kind != objectKind {
		return nil
	}
	if !c.isOld || n.member("$ref") == nil {
		own, err := c.name(n, at)
		if err != nil {
			return err
		}
		at.resource = own
	}
	c.homes[n] = at

	for i, key := range n.keys {
		below := home{at.resource, at.at + "/" + key, at.isUnchecked || c.ignores(key)}
		if err := c.scanKeyword(key, n.kids[i], below); err != nil {
			return err
		}
	}
	return nil
}

var (
	// schemaKeywords lists the keywords that hold a schema, or a list of schemas.
	schemaKeywords = strings.Fields(`
		not if then else allOf anyOf oneOf items prefixItems additionalItems unevaluatedItems
		contains additionalProperties unevaluatedProperties propertyNames contentSchema`)
	// memberKeywords lists the keywords that hold an object whose members are schemas.
	memberKeywords = strings.Fields(`
		$defs definitions properties patternProperties dependentSchemas dependencies`)
)

// The keywords of each draft that the metaschema of the other draft ignores.
var (
	onlyOld = strings.Fields("additionalItems")
	onlyNew = strings.Fields(`
		$defs prefixItems unevaluatedItems unevaluatedProperties dependentSchemas contentSchema`)
)

// ignores reports whether the metaschema of the document's draft ignores a keyword.
func (c *compiler) ignores(keyword string) bool {
	if c.isOld {
		return slices.Contains(onlyNew, keyword)
	}
	return slices.Contains(onlyOld, keyword)
}

// scanKeyword scans the schemas in the value of a keyword.
func (c *compiler) scanKeyword(keyword string, value *node, at home) error {
	isList := value.kind == arrayKind && slices.Contains(schemaKeywords, keyword)
	isMembers := value.kind == objectKind && slices.Contains(memberKeywords, keyword)
	if !isList && !isMembers {
		if slices.Contains(schemaKeywords, keyword) {
			return c.scan(value, at)
		}
		return nil
	}

	for i, kid := range value.kids {
		token := strconv.Itoa(i)
		if isMembers {
			token = escapeToken(value.keys[i])
		}
		if err := c.scan(kid, home{at.resource, at.at + "/" + token, at.isUnchecked}); err != nil {
			return err
		}
	}
	return nil
}

// name records the address and the anchors of a schema. It returns the resource to which the
// schema belongs.
func (c *compiler) name(n *node, at home) (*resource, error) {
	own := at.resource
	id, fragment := "", ""
	if text := n.member("$id"); text != nil && text.kind == textKind {
		id, fragment, _ = strings.Cut(text.text, "#")
	}
	if id != "" {
		address, err := own.address.Parse(id)
		if err != nil {
			return nil, fmt.Errorf("cannot read the \"$id\" %q: %w", clip(id, 100), err)
		}
		own = &resource{node: n, at: at.at, address: address, anchors: map[string]*node{}}
		if c.resources[address.String()] != nil {
			return nil, fmt.Errorf("two \"$id\" are %q: remove one", clip(id, 100))
		}
		c.resources[address.String()] = own
	}

	var anchors []string
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if text := n.member(keyword); text != nil && text.kind == textKind && !c.isOld {
			anchors = append(anchors, text.text)
		}
	}
	if c.isOld && fragment != "" {
		anchors = append(anchors, fragment)
	}
	for _, anchor := range anchors {
		if known := own.anchors[anchor]; known != nil && known != n {
			return nil, fmt.Errorf("two schemas have the anchor %q: rename one", clip(anchor, 60))
		}
		own.anchors[anchor] = n
	}
	return own, nil
}

// follow compiles the target of a reference.
func (c *compiler) follow(l link) error {
	from := c.homes[l.from.node].resource
	if from == nil {
		return fmt.Errorf("the reference %q stands where no schema can stand", clip(l.to, 200))
	}
	n, at, err := c.find(l.to, from)
	if err != nil {
		return err
	}
	if known := c.homes[n]; known.isUnchecked {
		if err := checkByMetaschema(n, c.document); err != nil {
			return fmt.Errorf("cannot use %q as a schema: %w", "#"+clip(at, 200), err)
		}
		known.isUnchecked = false
		c.homes[n] = known
	}
	sub, err := c.compile(n, at)
	if err != nil {
		return err
	}
	l.from.refs = append(l.from.refs, sub)
	return nil
}

// find returns the target of a reference in a resource, and its JSON pointer.
func (c *compiler) find(ref string, from *resource) (*node, string, error) {
	address, err := from.address.Parse(ref)
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the reference %q: %w", clip(ref, 200), err)
	}
	fragment := address.Fragment
	address.Fragment, address.RawFragment = "", ""

	to := c.resources[address.String()]
	if to == nil {
		name := strings.TrimPrefix(address.String(), "contract://document")
		return nil, "", fmt.Errorf(
			"it refers to another document, %s: copy that schema into \"$defs\"", clip(name, 200))
	}
	if fragment == "" || fragment[0] == '/' {
		return c.findByPointer(to, fragment)
	}
	if n := to.anchors[fragment]; n != nil {
		return n, c.homes[n].at, nil
	}
	return nil, "", fmt.Errorf("the reference %q was not found in it", clip(ref, 200))
}

// findByPointer returns the schema at a JSON pointer in a resource. It may be in a place where
// the scan did not expect a schema.
func (c *compiler) findByPointer(in *resource, pointer string) (*node, string, error) {
	n, at := in.node, home{resource: in, at: in.at}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		if n = n.child(unescapeToken.Replace(token)); n == nil {
			return nil, "", fmt.Errorf("the reference %q was not found in it", "#"+clip(pointer, 200))
		}
		at.at += "/" + token
		if known, ok := c.homes[n]; ok {
			at = known
		}
	}

	if _, isKnown := c.homes[n]; isKnown || n.kind == boolKind {
		return n, at.at, nil
	}
	if err := checkByMetaschema(n, c.document); err != nil {
		return nil, "", fmt.Errorf("cannot use %q as a schema: %w", "#"+clip(at.at, 200), err)
	}
	return n, at.at, c.scan(n, at)
}

// unescapeToken and escapeToken convert between names and parts of a JSON pointer.
var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

func escapeToken(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// child returns the item or member with a name, or nil.
func (n *node) child(name string) *node {
	if n.kind != arrayKind {
		return n.member(name)
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(n.kids) {
		return nil
	}
	return n.kids[i]
}
