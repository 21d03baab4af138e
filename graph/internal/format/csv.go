package format

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readCSV reads rows of nodes or rows of edges, depending on the header.
func (r *reading) readCSV(in io.Reader) error {
	m := newMeter(in)
	t := table{reading: r}
	rows, err := t.readHeader(bufio.NewReader(m))
	if err != nil {
		return fmt.Errorf("the header: %w", err)
	}
	if t.isEdges && r.sink.Edge == nil || !t.isEdges && r.sink.Node == nil {
		return nil
	}

	for {
		m.next()
		row, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, csv.ErrFieldCount):
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: it has %d fields, and the header has %d",
				line, len(row), len(t.columns))
		case err != nil:
			return err // names the line
		}

		r.line, _ = rows.FieldPos(0)
		if err := t.emit(row); err != nil {
			return fmt.Errorf("line %d: %w", r.line, err)
		}
	}
}

// table is a CSV file after its header has been read.
type table struct {
	*reading
	columns []column
	isEdges bool
}

// readHeader returns a reader of the rows below the header.
func (t *table) readHeader(in *bufio.Reader) (*csv.Reader, error) {
	first := t.Header
	if first == "" {
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		first = line
	}
	comma, header, err := splitHeader(first, t.Comma)
	if err != nil {
		return nil, err
	}
	if len(header) > maxProperties {
		return nil, fmt.Errorf("it has %d columns, more than %d", len(header), maxProperties)
	}
	if t.columns, t.isEdges, err = parseHeader(header); err != nil {
		return nil, err
	}

	if t.ListComma == 0 {
		t.ListComma = ';'
		if comma == ';' {
			t.ListComma = '|'
		}
	}

	rows := csv.NewReader(in)
	if t.Header == "" { // the header is read again, to keep line numbers right
		rows = csv.NewReader(io.MultiReader(strings.NewReader(first), in))
	}
	rows.Comma, rows.FieldsPerRecord, rows.ReuseRecord = comma, len(header), true
	if t.Header == "" {
		_, err = rows.Read()
	}

	return rows, err
}

// emit passes on a row as a node or an edge.
func (t *table) emit(row []string) error {
	n := Node{Properties: map[string]any{}}
	e := Edge{}
	for i, c := range t.columns {
		field := row[i]
		if field == "" {
			continue // Neo4j's import has no other way to omit a property
		}

		switch c.role {
		case ignored:
		case nodeID:
			n.ID = c.inSpace(field)
		case nodeLabels:
			n.Labels = append(n.Labels, strings.Split(field, string(t.ListComma))...)
		case edgeStart:
			e.From = c.inSpace(field)
		case edgeEnd:
			e.To = c.inSpace(field)
		case edgeType:
			e.Type = field
		case property:
		}
		if c.name != "" && c.role != ignored {
			value, err := t.parseField(c, field)
			if err != nil {
				return fmt.Errorf("column %q: %w", c.name, err)
			}
			n.Properties[c.name] = value
		}
	}

	if t.isEdges {
		e.Properties = n.Properties
		return t.edge(e)
	}

	return t.node(n)
}

// parseField returns the value of a property.
func (t *table) parseField(c column, field string) (any, error) {
	if !c.list {
		return c.kind.parse(field)
	}
	var list []any
	for element := range strings.SplitSeq(field, string(t.ListComma)) {
		value, err := c.kind.parse(element)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}

	return list, nil
}

// kind is the type of a property in a CSV header and in a GraphML key.
type kind string

const (
	kindInt    kind = "int"
	kindFloat  kind = "float"
	kindBool   kind = "boolean"
	kindString kind = "string"
	kindJSON   kind = "json" // a list of GraphML
)

// kinds maps the names of types to kinds. Dates and points remain strings.
var kinds = map[string]kind{
	"int": kindInt, "integer": kindInt, "long": kindInt, "short": kindInt, "byte": kindInt,
	"float": kindFloat, "double": kindFloat,
	"boolean": kindBool, "bool": kindBool,
	"string": kindString, "char": kindString, "point": kindString, "duration": kindString,
	"date": kindString, "time": kindString, "localtime": kindString,
	"datetime": kindString, "localdatetime": kindString,
}

// parse returns the value that a string represents.
func (k kind) parse(text string) (any, error) {
	switch k {
	case kindString:
		return text, nil
	case kindInt:
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
			return n, nil
		}
	case kindFloat:
		if f, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			return f, nil
		}
	case kindBool:
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
	case kindJSON:
		return parseJSONValue(text)
	}

	return nil, fmt.Errorf("%q is not of the type %s", cutNumber(text), k)
}

// parseJSONValue decodes a list or a map from a string.
func parseJSONValue(text string) (any, error) {
	if isDeeper([]byte(text), maxDepth) {
		return nil, fmt.Errorf("it has more than %d levels of lists and objects", maxDepth)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}

	return convertNumbers(value)
}
