package format

import (
	"bufio"
	"fmt"
	"io"
	"slices"
)

// Write writes a property graph as JSON Lines, JSON or GraphML. The notes describe the parts that
// the format cannot represent; JSON Lines and JSON represent everything. CSV needs two files: see
// [WriteCSV].
func Write(f Format, out io.Writer, from Source) (notes []string, err error) {
	w := &writing{out: bufio.NewWriterSize(out, 1<<16), from: from}
	switch f {
	case JSONLines:
		err = w.writeJSONLines()
	case JSON:
		err = w.writeJSON()
	case GraphML:
		err = w.writeGraphML()
	default:
		return nil, fmt.Errorf("%s is not a format of property graphs in one file", f)
	}
	if err != nil {
		return nil, err
	}

	return w.notes, w.out.Flush()
}

// writing is a file being written.
type writing struct {
	out   *bufio.Writer
	from  Source
	buf   []byte // the current line
	notes []string
}

func (w *writing) append(text string) { w.buf = append(w.buf, text...) }

// quote appends before unchanged, and then text as a JSON string.
func (w *writing) quote(before, text string) {
	w.buf = appendString(append(w.buf, before...), text)
}

// line writes the appended bytes and a line end.
func (w *writing) line() error {
	w.buf = append(w.buf, '\n')
	_, err := w.out.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// note adds a note unless it exists already.
func (w *writing) note(what string) {
	if !slices.Contains(w.notes, what) {
		w.notes = append(w.notes, what)
	}
}

// writeJSONLines writes records in the format of Neo4j's export.
func (w *writing) writeJSONLines() error {
	err := w.from.Nodes(func(n Node) error {
		w.quote(`{"type":"node","id":`, n.ID)
		w.append(`,"labels":`)
		w.buf = appendStrings(w.buf, n.Labels)
		w.append(`,"properties":`)
		w.buf = appendObject(w.buf, n.Properties)
		w.append(`}`)
		return w.line()
	})
	if err != nil {
		return err
	}

	return w.from.Edges(func(e Edge) error {
		w.append(`{"type":"relationship"`)
		if e.ID != "" {
			w.quote(`,"id":`, e.ID)
		}
		w.quote(`,"label":`, e.Type)
		w.quote(`,"start":{"id":`, e.From)
		w.quote(`},"end":{"id":`, e.To)
		w.append(`},"properties":`)
		w.buf = appendObject(w.buf, e.Properties)
		w.append(`}`)
		return w.line()
	})
}

// writeJSON writes a document in the format of networkx's node_link_data. If a property's name is
// taken, all properties of the record go into its object "properties".
func (w *writing) writeJSON() error {
	w.append(`{"directed":true,"multigraph":true,"graph":{},"nodes":[`)
	comma := ""
	err := w.from.Nodes(func(n Node) error {
		if err := w.separate(&comma); err != nil {
			return err
		}
		w.quote(`{"id":`, n.ID)
		w.append(`,"labels":`)
		w.buf = appendStrings(w.buf, n.Labels)
		w.appendMembers(n.Properties, "id", "labels", "type", "properties")
		return nil
	})
	if err == nil {
		err = w.line()
	}
	if err != nil {
		return err
	}

	w.append(`],"edges":[`)
	comma = ""
	number := 0 // distinguishes parallel edges
	err = w.from.Edges(func(e Edge) error {
		if err := w.separate(&comma); err != nil {
			return err
		}
		w.quote(`{"source":`, e.From)
		w.quote(`,"target":`, e.To)
		w.append(fmt.Sprintf(`,"key":%d`, number))
		number++
		w.quote(`,"type":`, e.Type)
		if e.ID != "" {
			w.quote(`,"id":`, e.ID)
		}
		w.appendMembers(e.Properties, takenByEdges...)
		return nil
	})
	if err != nil {
		return err
	}
	w.append("\n]}")
	return w.line()
}

var takenByEdges = []string{"source", "target", "from", "to", "start", "end", "key", "type", "id", "properties"}

// separate ends the line before an element of a list.
func (w *writing) separate(comma *string) error {
	w.append(*comma)
	*comma = ","
	return w.line()
}

// appendMembers appends the properties and the end of a record.
func (w *writing) appendMembers(properties map[string]any, taken ...string) {
	for _, name := range taken {
		if _, ok := properties[name]; ok {
			w.append(`,"properties":`)
			w.buf = append(appendObject(w.buf, properties), '}')
			return
		}
	}
	for _, name := range sortedNames(properties) {
		w.quote(",", name)
		w.append(":")
		w.buf = appendValue(w.buf, properties[name])
	}
	w.append("}")
}

// appendStrings appends a list of strings.
func appendStrings(b []byte, all []string) []byte {
	b = append(b, '[')
	for i, text := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, text)
	}
	return append(b, ']')
}
