package format

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// These are the limits on a record. A graph that needs more contains documents, which belong in
// files.
const (
	maxRecord     = 16 << 20 // bytes of a line, a row or an element
	maxDepth      = 64       // maximum nesting of lists, maps and elements
	maxProperties = 10_000   // per node or edge, and elements per map
	maxLabels     = 64       // per node
	maxID         = 4096     // bytes
	maxName       = 1024     // bytes of a label, a type or a property's name
)

// reading is the part that the readers of all formats share: the options, and the checks before the
// sink.
type reading struct {
	Options
	sink Sink
	line int // the record's line
}

// node completes and checks a node, and passes it to the sink.
func (r *reading) node(n Node) error {
	if r.sink.Node == nil {
		return nil
	}
	if len(n.Labels) == 0 {
		n.Labels = r.Labels
	}
	if err := checkNode(n); err != nil {
		return fmt.Errorf("%s: %w", nameRecord("node", n.ID), err)
	}
	n.Line = r.line
	return r.sink.Node(n)
}

// edge completes and checks an edge, and passes it to the sink.
func (r *reading) edge(e Edge) error {
	if r.sink.Edge == nil {
		return nil
	}
	if e.Type == "" {
		if e.Type = r.Type; e.Type == "" {
			e.Type = UntypedEdge
			r.note("an edge without a type became " + UntypedEdge)
		}
	}
	if err := checkEdge(e); err != nil {
		return fmt.Errorf("%s: %w", nameRecord("edge from", e.From), err)
	}
	e.Line = r.line
	return r.sink.Edge(e)
}

func (r *reading) note(what string) {
	if r.sink.Note != nil {
		r.sink.Note(what)
	}
}

// noteFile adds a note about something other than a node or an edge: only once, even if a file is
// read twice.
func (r *reading) noteFile(what string) {
	if r.sink.Node != nil {
		r.note(what)
	}
}

// nameRecord identifies a node or an edge in errors.
func nameRecord(what, id string) string {
	const most = 80
	if len(id) > most {
		id = strings.ToValidUTF8(id[:most], "") + "…"
	}
	return fmt.Sprintf("%s %q", what, id)
}

func checkNode(n Node) error {
	if err := checkName("id", n.ID, maxID); err != nil {
		return err
	}
	if len(n.Labels) > maxLabels {
		return fmt.Errorf("it has %d labels, more than %d", len(n.Labels), maxLabels)
	}
	for _, label := range n.Labels {
		if err := checkName("label", label, maxName); err != nil {
			return err
		}
	}

	return checkProperties(n.Properties)
}

func checkEdge(e Edge) error {
	if err := checkName("type", e.Type, maxName); err != nil {
		return err
	}
	if err := checkName("node that it leaves", e.From, maxID); err != nil {
		return err
	}
	if err := checkName("node that it enters", e.To, maxID); err != nil {
		return err
	}
	if e.ID != "" {
		if err := checkName("id", e.ID, maxID); err != nil {
			return err
		}
	}

	return checkProperties(e.Properties)
}

// checkName checks an identifier, a label, a type or the name of a property.
func checkName(what, name string, most int) error {
	switch {
	case name == "":
		return fmt.Errorf("the %s is empty", what)
	case len(name) > most:
		return fmt.Errorf("the %s has %d bytes, more than %d", what, len(name), most)
	}
	if err := checkText(name); err != nil {
		return fmt.Errorf("the %s %w", what, err)
	}

	return nil
}

var (
	errNotUTF8 = errors.New("is not valid UTF-8: convert the file to UTF-8")
	errNUL     = errors.New("contains the character NUL: remove it")
)

// checkText refuses strings that some view or export of a graph cannot represent.
func checkText(text string) error {
	if !utf8.ValidString(text) {
		return errNotUTF8
	}
	if strings.IndexByte(text, 0) >= 0 {
		return errNUL
	}
	return nil
}

func checkProperties(all map[string]any) error {
	if len(all) > maxProperties {
		return fmt.Errorf("it has %d properties, more than %d", len(all), maxProperties)
	}
	for name, value := range all {
		if err := checkName("name of a property", name, maxName); err != nil {
			return err
		}
		if err := checkValue(value, maxDepth); err != nil {
			return fmt.Errorf("the property %q %w", name, err)
		}
	}

	return nil
}

// checkValue checks a property's value, which may have that many levels.
func checkValue(value any, levels int) error {
	if levels == 0 {
		return fmt.Errorf("has more than %d levels of lists and maps", maxDepth)
	}
	switch v := value.(type) {
	case string:
		return checkText(v)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("is %v, and a graph holds finite numbers: leave it out", v)
		}
	case []any:
		for _, element := range v {
			if err := checkValue(element, levels-1); err != nil {
				return err
			}
		}
	case map[string]any:
		if len(v) > maxProperties {
			return fmt.Errorf("has %d elements, more than %d", len(v), maxProperties)
		}
		for key, element := range v {
			if err := checkText(key); err != nil {
				return err
			}
			if err := checkValue(element, levels-1); err != nil {
				return err
			}
		}
	}

	return nil
}
