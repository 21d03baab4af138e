package format

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// graphML reads GraphML as networkx, yEd, Gephi and Neo4j's apoc write it.
type graphML struct {
	*reading
	meter *meter
	dec   *xml.Decoder
	keys  map[string]*graphKey // by identifier

	depth int
	// open contains the nodes and edges that have not ended yet, outermost first.
	open       []*element
	undirected []bool // the default of each open graph
	key        *graphKey
	data       *data
}

// graphKey is the declaration of a property.
type graphKey struct {
	id, name string
	of       string // node, edge or all; others are ignored
	kind     kind
	drawing  bool    // the data describes a drawing by yEd, not a value
	fallback *string // the default
}

// element is a node or an edge.
type element struct {
	name  string // node or edge
	attrs map[string]string
	data  map[string]any
}

// data is the content of an element data or default.
type data struct {
	key    *graphKey
	inside int // number of open elements inside
	label  bool
	text   strings.Builder
}

func (r *reading) readGraphML(in io.Reader) error {
	m := newMeter(in)
	g := graphML{reading: r, meter: m, dec: newXMLDecoder(m), keys: map[string]*graphKey{}}
	for found := false; ; {
		token, err := g.dec.Token()
		if errors.Is(err, io.EOF) {
			if !found {
				return errors.New("the document has no element graphml")
			}
			return nil
		}

		if start, ok := token.(xml.StartElement); ok && !found {
			if found = start.Name.Local == "graphml"; !found {
				return fmt.Errorf("the document is %q, not graphml", cutName(start.Name.Local))
			}
		}
		if err == nil {
			err = g.read(token)
		}
		if err != nil {
			line, _ := g.dec.InputPos()
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (g *graphML) read(token xml.Token) error {
	switch t := token.(type) {
	case xml.Directive:
		_, err := readDoctype(t, false)
		return err
	case xml.StartElement:
		if g.depth++; g.depth > maxDepth {
			return fmt.Errorf("its elements are nested more than %d deep", maxDepth)
		}
		return g.start(t)
	case xml.EndElement:
		g.depth--
		return g.end(t.Name.Local)
	case xml.CharData:
		if g.data != nil && (g.data.inside == 0 || g.data.label) {
			g.data.text.Write(t)
		}
	}

	return nil
}

func (g *graphML) start(t xml.StartElement) error {
	name := t.Name.Local
	if g.data != nil {
		g.data.inside++
		g.data.label = g.data.key.drawing && (name == "NodeLabel" || name == "EdgeLabel") && g.data.text.Len() == 0
		return nil
	}

	attrs := map[string]string{}
	for _, a := range t.Attr {
		attrs[a.Name.Local] = a.Value
	}
	switch name {
	case "graph":
		g.meter.next()
		g.undirected = append(g.undirected, attrs["edgedefault"] == "undirected")
	case "key":
		return g.startKey(attrs)
	case "default":
		if g.key == nil {
			return errors.New("an element default is outside of a key")
		}
		g.data = &data{key: g.key}
	case "node", "edge":
		g.meter.next()
		g.open = append(g.open, &element{name, attrs, map[string]any{}})
	case "data":
		return g.startData(attrs["key"])
	case "port", "hyperedge":
		g.noteFile("an element " + name + " is ignored")
		return g.skip()
	}

	return nil
}

// skip reads an element to its end.
func (g *graphML) skip() error {
	g.depth--
	for depth := 1; depth > 0; {
		token, err := g.dec.Token()
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return fmt.Errorf("its elements are nested more than %d deep", maxDepth)
			}
		case xml.EndElement:
			depth--
		}
	}

	return nil
}

func (g *graphML) startKey(attrs map[string]string) error {
	id := attrs["id"]
	if _, twice := g.keys[id]; twice {
		return fmt.Errorf("the key %q is declared twice", cutName(id))
	}
	if len(g.keys) == maxProperties {
		return fmt.Errorf("it declares more than %d keys", maxProperties)
	}

	k := &graphKey{id: id, name: attrs["attr.name"], of: attrs["for"]}
	if k.name == "" {
		k.name = id
	}
	if attrs["type"] == "" && attrs["yfiles.type"] != "" {
		attrs["type"] = attrs["yfiles.type"]
	}
	switch {
	case attrs["attr.list"] != "":
		k.kind = kindJSON
	case attrs["attr.name"] == "" && strings.HasSuffix(attrs["type"], "graphics"):
		k.drawing, k.kind, k.name = true, kindString, "label"
	default:
		k.kind = kinds[strings.ToLower(attrs["attr.type"])]
		if k.kind == "" {
			k.kind = kindString
		}
	}
	g.keys[id], g.key = k, k
	return nil
}

func (g *graphML) startData(id string) error {
	k, ok := g.keys[id]
	if !ok {
		return fmt.Errorf("the key %q of a data element is not declared", cutName(id))
	}
	g.data = &data{key: k}
	if len(g.open) == 0 {
		g.noteFile("attributes of the graph itself are ignored")
	}

	return nil
}

func (g *graphML) end(name string) error {
	if g.data != nil && g.data.inside > 0 {
		g.data.inside--
		g.data.label = false
		return nil
	}

	switch name {
	case "default":
		text := g.data.text.String()
		g.data.key.fallback, g.data = &text, nil
		g.meter.next()
	case "key":
		g.key = nil
		g.meter.next()
	case "data":
		d := g.data
		g.data = nil
		if len(g.open) == 0 {
			return nil
		}
		return g.open[len(g.open)-1].set(d)
	case "graph":
		g.undirected = g.undirected[:len(g.undirected)-1]
	case "node", "edge":
		g.line, _ = g.dec.InputPos()
		e := g.open[len(g.open)-1]
		g.open = g.open[:len(g.open)-1]
		g.meter.next()
		return g.emit(e)
	}

	return nil
}

// set sets a property. Empty data of a type other than string is not a value.
func (e *element) set(d *data) error {
	text := d.text.String()
	if d.key.drawing {
		if text = strings.TrimSpace(text); text == "" {
			return nil
		}
		if _, named := e.data[d.key.name]; named {
			return nil
		}
	}
	if text == "" && d.key.kind != kindString {
		return nil
	}

	value, err := d.key.kind.parse(text)
	if err != nil {
		return fmt.Errorf("%s: the key %q: %w", nameRecord(e.name, e.attrs["id"]), d.key.name, err)
	}
	if len(e.data) >= maxProperties {
		return fmt.Errorf("%s: it has more than %d properties", nameRecord(e.name, e.attrs["id"]), maxProperties)
	}
	e.data[d.key.name] = value
	return nil
}

// emit passes on a node or an edge.
func (g *graphML) emit(e *element) error {
	for _, k := range g.keys {
		_, set := e.data[k.name]
		if k.fallback == nil || set || k.of != e.name && k.of != "all" && k.of != "" {
			continue
		}
		d := data{key: k}
		d.text.WriteString(*k.fallback)
		if err := e.set(&d); err != nil {
			return err
		}
	}

	if e.name == "node" {
		return g.emitNode(e)
	}

	return g.emitEdge(e)
}

func (g *graphML) emitNode(e *element) error {
	n := Node{ID: e.attrs["id"], Properties: e.data}
	labels, labelled := e.data["labels"]
	kind, typed := e.data["type"].(string)
	switch {
	case e.attrs["labels"] != "":
		n.Labels = splitLabels(e.attrs["labels"])
		delete(e.data, "labels") // redundant
	case labelled:
		var err error
		if n.Labels, err = labelsOf(labels); err != nil {
			return fmt.Errorf("%s: %w", nameRecord("node", n.ID), err)
		}
		delete(e.data, "labels")
	case typed:
		n.Labels = []string{kind}
		delete(e.data, "type")
	}

	if len(g.open) > 0 {
		g.noteFile("a node within a node has its identifier as the property parent")
		n.Properties["parent"] = g.open[len(g.open)-1].attrs["id"]
	}

	return g.node(n)
}

// splitLabels splits labels as Neo4j writes them, ":Person:User".
func splitLabels(text string) []string {
	if !strings.HasPrefix(text, ":") {
		return []string{text}
	}
	return strings.FieldsFunc(text, func(c rune) bool { return c == ':' })
}

// labelsOf returns the labels in data: a string, or a JSON list.
func labelsOf(value any) ([]string, error) {
	if text, ok := value.(string); ok {
		if !strings.HasPrefix(text, "[") {
			return splitLabels(text), nil
		}
		if list, err := parseJSONValue(text); err == nil {
			value = list
		}
	}

	return object{"labels": value}.takeLabels("labels")
}

func (g *graphML) emitEdge(e *element) error {
	if len(g.undirected) > 0 && g.undirected[len(g.undirected)-1] && e.attrs["directed"] != "true" {
		g.noteFile("an undirected edge is stored once, from its source to its target")
	}
	edge := Edge{
		ID: e.attrs["id"], From: e.attrs["source"], To: e.attrs["target"],
		Type: e.attrs["label"], Properties: e.data,
	}

	if edge.Type != "" && e.data["label"] == edge.Type {
		delete(e.data, "label") // redundant
	}
	for _, key := range []string{"type", "label"} {
		if text, ok := e.data[key].(string); ok && edge.Type == "" && text != "" {
			edge.Type = text
			delete(e.data, key)
		}
	}

	return g.edge(edge)
}
