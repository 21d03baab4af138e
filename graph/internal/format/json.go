package format

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readJSONLines reads one record per line: see object. It skips empty lines.
func (r *reading) readJSONLines(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 1<<16), maxRecord)
	for lines.Scan() {
		r.line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}

		o, err := parseObject(lines.Bytes())
		if err == nil {
			err = r.emit(o)
		}
		if broken := lines.Err(); broken != nil { // the line is incomplete
			err = broken
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", r.line, err)
		}
	}

	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = errTooLong
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", r.line+1, err)
	}

	return nil
}

// document reads a JSON document: a list of records, or an object with a list of nodes
// and a list of edges, as networkx and Neo4j write it.
type document struct {
	*reading
	meter      *meter
	dec        *json.Decoder
	multigraph bool
}

// lists maps the keys of a document's lists to the functions that pass on their elements.
var lists = map[string]func(*reading, object) error{
	"nodes":         (*reading).emitNode,
	"links":         (*reading).emitEdge,
	"edges":         (*reading).emitEdge,
	"rels":          (*reading).emitEdge,
	"relationships": (*reading).emitEdge,
}

func (r *reading) readJSON(in io.Reader) error {
	m := newMeter(in)
	d := document{reading: r, meter: m, dec: json.NewDecoder(m)}
	if err := d.read(); err != nil {
		return d.explain(err)
	}
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		return d.explain(errors.Join(err, errors.New(
			"more text follows the document: if the file has one object per line, name it .jsonl")))
	}

	return nil
}

// explain adds the position of the error to an invalid document's error.
func (d *document) explain(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("byte %d: the document is not valid JSON: %w", d.dec.InputOffset(), err)
	}
	return err
}

func (d *document) read() error {
	first, err := d.dec.Token()
	switch {
	case err != nil:
		return err
	case first == json.Delim('['):
		return d.readList("", (*reading).emit)
	case first != json.Delim('{'):
		return errNoGraph
	}

	found := false
	for d.dec.More() {
		key, err := d.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		emit, ok := lists[name]
		if !ok {
			err = d.readAttribute(name)
		} else if err = d.openList(name); err == nil {
			found = true
			err = d.readList(name, emit)
		}
		if err != nil {
			return err
		}
	}

	if !found {
		return errNoGraph
	}
	_, err = d.dec.Token()
	return err
}

var errNoGraph = errors.New(
	`the document has no list of records and no "nodes" with "edges" or "links": ` +
		`write it as networkx's node_link_data does`)

func (d *document) openList(name string) error {
	first, err := d.dec.Token()
	if err == nil && first != json.Delim('[') {
		err = fmt.Errorf("%q is not a list", name)
	}
	return err
}

// readList reads the elements of a list and its end.
func (d *document) readList(name string, emit func(*reading, object) error) error {
	for i := 0; d.dec.More(); i++ {
		d.line = i
		var text json.RawMessage
		if err := d.dec.Decode(&text); err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		d.meter.next()

		o, err := parseObject(text)
		if d.multigraph && name != "nodes" {
			delete(o, "key") // only distinguishes parallel edges
		}
		if err == nil {
			err = emit(d.reading, o)
		}
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
	}
	_, err := d.dec.Token()
	return err
}

// readAttribute reads a member that is not a list of records.
func (d *document) readAttribute(name string) error {
	var value json.RawMessage
	if err := d.dec.Decode(&value); err != nil {
		return err
	}
	d.meter.next()
	switch text := string(value); {
	case name == "multigraph":
		d.multigraph = text == "true"
	case name == "directed" && text == "false":
		d.noteFile(undirected)
	case name == "graph" && text != "{}" && text != "null":
		d.noteFile("attributes of the graph itself are ignored")
	}

	return nil
}

const undirected = "the graph is undirected: each edge is stored once, from its source to its target"
