package format

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// writeGraphML writes a file that networkx, Gephi, yEd and Neo4j read. Keys come first in the file,
// so it iterates over the graph twice. Lists and maps are written as JSON, like lists in Neo4j's
// files.
func (w *writing) writeGraphML() error {
	k, err := w.collectKeys()
	if err != nil {
		return err
	}
	w.append(xml.Header + `<graphml xmlns="http://graphml.graphdrawing.org/xmlns">` + "\n")
	w.appendKeys(k)
	w.append(`<graph edgedefault="directed">`)
	if err := w.line(); err != nil {
		return err
	}

	err = w.from.Nodes(func(n Node) error {
		w.appendAttr(`<node id=`, n.ID)
		w.append(`>`)
		w.appendData("labels", joinLabels(n.Labels))
		w.appendProperties(k, "node", n.Properties)
		w.append(`</node>`)
		return w.line()
	})
	if err != nil {
		return err
	}
	err = w.from.Edges(func(e Edge) error {
		w.appendAttr(`<edge source=`, e.From)
		w.appendAttr(` target=`, e.To)
		if e.ID != "" {
			w.appendAttr(` id=`, e.ID)
		}
		w.appendAttr(` label=`, e.Type)
		w.append(`>`)
		w.appendData("label", e.Type)
		w.appendProperties(k, "edge", e.Properties)
		w.append(`</edge>`)
		return w.line()
	})
	if err != nil {
		return err
	}

	w.append("</graph>\n</graphml>")
	return w.line()
}

// keySet contains the keys of a graph: identifiers by element, name and type.
type keySet map[keyOf]string

type keyOf struct {
	element, name string
	kind          kind
}

// collectKeys iterates over the graph to find the names and types of its properties.
func (w *writing) collectKeys() (keySet, error) {
	keys := keySet{}
	add := func(element string, properties map[string]any) {
		for name, value := range properties {
			keys[keyOf{element, name, kindOf(value)}] = ""
		}
	}
	err := w.from.Nodes(func(n Node) error { add("node", n.Properties); return nil })
	if err != nil {
		return nil, err
	}
	err = w.from.Edges(func(e Edge) error { add("edge", e.Properties); return nil })
	if err != nil {
		return nil, err
	}

	for i, key := range keys.sorted() {
		keys[key] = fmt.Sprintf("d%d", i)
	}

	return keys, nil
}

func (k keySet) sorted() []keyOf {
	all := make([]keyOf, 0, len(k))
	for key := range k {
		all = append(all, key)
	}
	slices.SortFunc(all, func(a, b keyOf) int {
		return cmp.Or(
			cmp.Compare(a.element, b.element), cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind),
		)
	})

	return all
}

// kindOf returns the type of a value in a file that declares types.
func kindOf(value any) kind {
	switch value.(type) {
	case bool:
		return kindBool
	case int64:
		return kindInt
	case float64:
		return kindFloat
	case string:
		return kindString
	}

	return kindJSON
}

// attributeTypes maps kinds to GraphML's types.
var attributeTypes = map[kind]string{
	kindBool: "boolean", kindInt: "long", kindFloat: "double", kindString: "string", kindJSON: "string",
}

func (w *writing) appendKeys(k keySet) {
	w.append(`<key id="labels" for="node" attr.name="labels" attr.type="string"/>` + "\n" +
		`<key id="label" for="edge" attr.name="label" attr.type="string"/>` + "\n")
	for _, key := range k.sorted() {
		w.appendAttr(`<key id=`, k[key])
		w.appendAttr(` for=`, key.element)
		w.appendAttr(` attr.name=`, w.freeName(key))
		w.appendAttr(` attr.type=`, attributeTypes[key.kind])
		if key.kind == kindJSON {
			w.append(` attr.list="string"`)
		}
		w.append("/>\n")
	}
}

// freeName renames properties that readers would interpret as labels.
func (w *writing) freeName(key keyOf) string {
	if key.element == "node" && key.name == "labels" || key.element == "edge" && key.name == "label" {
		name := key.name + "_"
		w.note(fmt.Sprintf("the property %q is named %q: GraphML has that name for labels", key.name, name))
		return name
	}
	return key.name
}

func (w *writing) appendAttr(before, value string) {
	w.append(before + `"`)
	w.appendText(value)
	w.append(`"`)
}

func (w *writing) appendData(key, text string) {
	w.appendAttr(`<data key=`, key)
	w.append(`>`)
	w.appendText(text)
	w.append(`</data>`)
}

func (w *writing) appendProperties(k keySet, element string, properties map[string]any) {
	for _, name := range sortedNames(properties) {
		value := properties[name]
		w.appendData(k[keyOf{element, name, kindOf(value)}], fieldOf(value))
	}
}

// appendText appends escaped text. XML cannot represent most control characters.
func (w *writing) appendText(text string) {
	if strings.ContainsFunc(text, isControl) {
		w.note("control characters in texts are replaced: XML has none")
	}
	var escaped strings.Builder
	if err := xml.EscapeText(&escaped, []byte(text)); err == nil { // a Builder never fails
		w.append(escaped.String())
	}
}

func isControl(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0xFFFE || c == 0xFFFF
}

// joinLabels returns labels in Neo4j's form, ":Person:User", or as JSON if one contains a colon.
func joinLabels(labels []string) string {
	for _, label := range labels {
		if strings.Contains(label, ":") || strings.HasPrefix(label, "[") {
			return string(appendStrings(nil, labels))
		}
	}
	return ":" + strings.Join(labels, ":")
}
