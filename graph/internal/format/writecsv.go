package format

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteCSV writes two files in the format of Neo4j's import. The notes describe the values that it
// cannot represent: a property with several types and a map become strings, and an empty string is
// omitted.
func WriteCSV(nodes, edges io.Writer, from Source) (notes []string, err error) {
	w := &csvWriting{notes: map[string]bool{}}
	if err := w.writeNodes(nodes, from); err != nil {
		return nil, err
	}
	if err := w.writeEdges(edges, from); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(w.notes)), nil
}

type csvWriting struct {
	notes map[string]bool
}

// csvColumn is the common type of a property's values.
type csvColumn struct {
	kind kind
	list bool
}

func (w *csvWriting) writeNodes(out io.Writer, from Source) error {
	columns := map[string]csvColumn{}
	err := from.Nodes(func(n Node) error { return w.collect(columns, n.Properties) })
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(columns))
	rows := csv.NewWriter(out)
	if err := rows.Write(headerOf([]string{":ID", ":LABEL"}, names, columns)); err != nil {
		return err
	}

	err = from.Nodes(func(n Node) error {
		for _, label := range n.Labels {
			if strings.Contains(label, ";") {
				w.notes["a label with a semicolon is read as several"] = true
			}
		}
		row := []string{n.ID, strings.Join(n.Labels, ";")}
		return rows.Write(w.appendFields(row, names, columns, n.Properties))
	})
	rows.Flush()
	return errors.Join(err, rows.Error())
}

func (w *csvWriting) writeEdges(out io.Writer, from Source) error {
	columns := map[string]csvColumn{}
	err := from.Edges(func(e Edge) error { return w.collect(columns, e.Properties) })
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(columns))
	rows := csv.NewWriter(out)
	if err := rows.Write(headerOf([]string{":START_ID", ":END_ID", ":TYPE"}, names, columns)); err != nil {
		return err
	}

	err = from.Edges(func(e Edge) error {
		if e.ID != "" {
			w.notes["identifiers of edges are left out"] = true
		}
		return rows.Write(w.appendFields([]string{e.From, e.To, e.Type}, names, columns, e.Properties))
	})
	rows.Flush()
	return errors.Join(err, rows.Error())
}

// collect adds the properties of a record to the columns.
func (w *csvWriting) collect(columns map[string]csvColumn, properties map[string]any) error {
	for name, value := range properties {
		is := columnOf(value)
		if is.kind == kindJSON {
			w.notes[fmt.Sprintf("the property %q has values that are JSON texts", name)] = true
			is.kind = kindString
		}
		was, ok := columns[name]
		switch {
		case !ok || is == was:
		case !is.list && !was.list && isNumber(is.kind) && isNumber(was.kind):
			is.kind = kindFloat
			w.notes[fmt.Sprintf("the property %q has whole numbers and others: all are float", name)] = true
		default:
			is = csvColumn{kind: kindString}
			w.notes[fmt.Sprintf("the property %q has values of several types: all are texts", name)] = true
		}
		columns[name] = is
	}

	return nil
}

func isNumber(k kind) bool { return k == kindInt || k == kindFloat }

// columnOf returns the type of a value. The type is a list if CSV can separate the elements.
func columnOf(value any) csvColumn {
	list, ok := value.([]any)
	if !ok {
		return csvColumn{kind: kindOf(value)}
	}
	var of kind
	for i, element := range list {
		text, _ := element.(string)
		k := kindOf(element)
		if k == kindJSON || i > 0 && k != of || k == kindString && (text == "" || strings.Contains(text, ";")) {
			return csvColumn{kind: kindJSON}
		}
		of = k
	}
	if of == "" { // an empty field is not a list
		of = kindJSON
	}

	return csvColumn{of, of != kindJSON}
}

func headerOf(first, names []string, columns map[string]csvColumn) []string {
	for _, name := range names {
		field := name + ":" + string(columns[name].kind)
		if columns[name].list {
			field += "[]"
		}
		first = append(first, field)
	}
	return first
}

// appendFields appends the properties of a record, ordered by name.
func (w *csvWriting) appendFields(
	row, names []string, columns map[string]csvColumn, properties map[string]any,
) []string {
	for _, name := range names {
		value, ok := properties[name]
		if !ok {
			row = append(row, "")
			continue
		}
		if text, _ := value.(string); value == "" || strings.Contains(text, "\r\n") {
			w.notes[fmt.Sprintf("the property %q has empty texts, which are left out, "+
				"or line ends that change", name)] = true
		}

		elements, isList := value.([]any)
		if !isList || !columns[name].list {
			row = append(row, fieldOf(value))
			continue
		}
		texts := make([]string, 0, len(elements))
		for _, element := range elements {
			texts = append(texts, fieldOf(element))
		}
		row = append(row, strings.Join(texts, ";"))
	}

	return row
}

// fieldOf returns a value as text: a string unchanged, anything else as JSON.
func fieldOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	return string(appendValue(nil, value))
}
