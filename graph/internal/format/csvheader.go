package format

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// role is the purpose of a CSV column.
type role int

const (
	property role = iota
	ignored
	nodeID
	nodeLabels
	edgeStart
	edgeEnd
	edgeType
)

var roles = map[string]role{
	"IGNORE": ignored, "ID": nodeID, "LABEL": nodeLabels,
	"START_ID": edgeStart, "END_ID": edgeEnd, "TYPE": edgeType,
}

// column is a CSV column: "age:int", "tags:string[]", "movieId:ID(Movie)", ":TYPE".
type column struct {
	name  string // the property's name; empty if the column is not a property
	role  role
	kind  kind
	list  bool
	space string // the ID space; nodes in two spaces may have the same identifier
}

// inSpace returns the identifier of a node in the graph. In the file, nodes in two spaces may have
// the same one.
func (c column) inSpace(id string) string {
	if c.space == "" {
		return id
	}
	return c.space + "/" + id
}

// splitHeader splits the header at the separator comma. If comma is 0, it uses the separator that
// yields a column for identifiers.
func splitHeader(line string, comma rune) (rune, []string, error) {
	commas := []rune{comma}
	if comma == 0 {
		commas = []rune{',', '\t', ';', '|'}
	}
	var row []string
	for _, comma := range commas {
		rows := csv.NewReader(strings.NewReader(line))
		rows.Comma = comma
		var err error
		if row, err = rows.Read(); err != nil {
			return 0, nil, err
		}

		for _, field := range row {
			if c, err := parseColumn(field); err == nil && (c.role == nodeID || c.role == edgeStart) {
				return comma, row, nil
			}
		}
	}
	return 0, nil, errors.New(
		`it has neither an ":ID" nor a ":START_ID": write it as for Neo4j's import, such as "id:ID,name,:LABEL" ` +
			`for nodes and ":START_ID,:END_ID,:TYPE" for edges`)
}

// parseHeader returns the columns, and whether they belong to edges.
func parseHeader(row []string) (columns []column, isEdges bool, err error) {
	names, count := map[string]bool{}, map[role]int{}
	for _, field := range row {
		c, err := parseColumn(field)
		if err != nil {
			return nil, false, fmt.Errorf("column %q: %w", cutName(field), err)
		}
		if c.name != "" && c.role != ignored {
			if names[c.name] {
				return nil, false, fmt.Errorf("the property %q has two columns", c.name)
			}
			names[c.name] = true
		}
		count[c.role]++
		columns = append(columns, c)
	}

	for only, what := range map[role]string{
		nodeID: ":ID", edgeStart: ":START_ID", edgeEnd: ":END_ID", edgeType: ":TYPE",
	} {
		if count[only] > 1 {
			return nil, false, fmt.Errorf("two columns are %s", what)
		}
	}
	nodes := count[nodeID] + count[nodeLabels]
	edges := count[edgeStart] + count[edgeEnd] + count[edgeType]
	switch {
	case nodes > 0 && edges > 0:
		return nil, false, errors.New("a file has nodes or edges, and this has columns of both: split it")
	case edges > 0 && count[edgeStart]*count[edgeEnd] == 0:
		return nil, false, errors.New("edges need :START_ID and :END_ID")
	}

	return columns, edges > 0, nil
}

// typed is a field of the header: name:type[](space){options}. Neo4j's options are ignored.
var typed = lazyregexp.New(`(?s)^(.*):([A-Za-z_]+)(\[\])?(?:\(([^()]*)\))?(?:\{[^{}]*\})?$`)

// parseColumn parses a field of the header.
func parseColumn(field string) (column, error) {
	field = strings.TrimSpace(field)
	parts := typed.FindStringSubmatch(field)
	if parts == nil {
		if field == "" {
			return column{}, errors.New("it has no name")
		}
		return column{name: field, kind: kindString}, nil
	}

	c := column{name: parts[1], kind: kindString, list: parts[3] != "", space: parts[4]}
	what := parts[2]
	if role, ok := roles[what]; ok {
		c.role = role
		return c, nil
	}
	kind, ok := kinds[strings.ToLower(what)]
	switch {
	case !ok:
		return c, fmt.Errorf("the type %q is unknown: use int, float, boolean or string", cutName(what))
	case c.name == "":
		return c, errors.New("it has no name")
	}
	c.kind = kind
	return c, nil
}

// cutName shortens a name for an error.
func cutName(text string) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
