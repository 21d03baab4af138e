package graphtruth

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gherkin "github.com/cucumber/gherkin/go/v26"
	messages "github.com/cucumber/messages/go/v21"
)

// The lines of the tally for Cypher.
const (
	cypherReads  = "openCypher TCK, scenarios that read"
	cypherWrites = "openCypher TCK, scenarios that write"
)

// cypherResults runs the scenarios of openCypher's Technology Compatibility Kit. It omits scenarios
// that create procedures, because graphs do not have any.
func cypherResults(t *testing.T) []result {
	t.Helper()
	files := readSuite(t, "tck")
	var results []result
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".feature" {
			continue
		}
		count := 0
		document, err := gherkin.ParseGherkinDocument(strings.NewReader(string(files[name])), func() string {
			count++
			return strconv.Itoa(count)
		})
		if err != nil {
			t.Fatal(err)
		}
		outlines := map[string]int{}
		for _, pickle := range gherkin.Pickles(*document, name, func() string { return "" }) {
			s := scenario{files: files, steps: pickle.Steps}
			if s.needsProcedures() {
				continue
			}
			number, _, _ := strings.Cut(strings.TrimPrefix(pickle.Name, "["), "]")
			id := strings.TrimSuffix(path.Base(name), ".feature") + "[" + number + "]"
			if outlines[id]++; outlines[id] > 1 {
				id += "." + strconv.Itoa(outlines[id])
			}
			suite := cypherReads
			if s.writes() {
				suite = cypherWrites
			}
			results = append(results, result{suite, id, s.run(t)})
		}
	}
	return results
}

type scenario struct {
	files map[string][]byte
	steps []*messages.PickleStep
}

func (s scenario) needsProcedures() bool {
	return slices.ContainsFunc(s.steps, func(step *messages.PickleStep) bool {
		return strings.HasPrefix(step.Text, "there exists a procedure")
	})
}

var (
	quotedText = regexp.MustCompile("'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|//[^\n]*|(?s)/\\*.*?\\*/")
	writing    = regexp.MustCompile(`(?i)(?:^|[^\w.:$])(CREATE|MERGE|SET|DELETE|REMOVE)\b`)
)

// writes reports whether the query under test changes the graph.
func (s scenario) writes() bool {
	return slices.ContainsFunc(s.steps, func(step *messages.PickleStep) bool {
		return step.Text == "executing query:" &&
			writing.MatchString(quotedText.ReplaceAllString(step.Argument.DocString.Content, "''"))
	})
}

// run runs the steps, and returns why the scenario failed.
func (s scenario) run(t *testing.T) string {
	t.Helper()
	store := newStore(t)
	var parameters map[string]any
	var got table
	var failed error
	for _, step := range s.steps {
		var err error
		switch text := step.Text; {
		case text == "an empty graph", text == "any graph", text == "no side effects":
		case text == "the side effects should be:":
		case strings.HasPrefix(text, "the binary-tree-"):
			name := strings.Fields(text)[1]
			_, err = store.cypher(string(s.files["graphs/"+name+"/"+name+".cypher"]), nil, true)
		case text == "having executed:":
			_, err = store.cypher(step.Argument.DocString.Content, nil, true)
		case text == "parameters are:":
			parameters, err = readParameters(step.Argument.DataTable)
		case text == "executing query:", text == "executing control query:":
			got, failed = store.cypher(step.Argument.DocString.Content, parameters, s.writes())
		case strings.Contains(text, " should be raised at "):
			err = wantError(failed, text)
		case text == "the result should be empty":
			if err = failed; err == nil && len(got.rows) > 0 {
				err = fmt.Errorf("%d rows instead of none", len(got.rows))
			}
		case strings.HasPrefix(text, "the result should be"):
			if err = failed; err == nil {
				err = got.compare(step.Argument.DataTable, text)
			}
		default:
			t.Fatalf("no step is known as %q", text)
		}
		if err != nil {
			return err.Error()
		}
	}
	return ""
}

// readParameters reads the table of a query's parameters.
func readParameters(rows *messages.PickleTable) (map[string]any, error) {
	parameters := map[string]any{}
	for _, row := range rows.Rows {
		value, err := parseValue(row.Cells[1].Value)
		if err != nil {
			return nil, err
		}
		parameters[row.Cells[0].Value] = value
	}
	return parameters, nil
}

// wantError checks that a query is refused, as in "a TypeError should be raised at runtime:
// InvalidArgumentValue". It does not compare the words, because they are openCypher's, and this
// graph has its own.
func wantError(failed error, text string) error {
	if failed == nil {
		return fmt.Errorf("no error, but %s", text)
	}
	if !isQueryError(failed) {
		return fmt.Errorf("another error: %w", failed)
	}
	return nil
}

// table is the answer to a Cypher query.
type table struct {
	columns []string
	rows    []map[string]any
}

// compare compares an answer with the table of a step such as "the result should be, in any
// order:".
func (a table) compare(want *messages.PickleTable, text string) error {
	var columns []string
	for _, cell := range want.Rows[0].Cells {
		columns = append(columns, cell.Value)
	}
	got, wanted := slices.Sorted(slices.Values(a.columns)), slices.Sorted(slices.Values(columns))
	if !slices.Equal(got, wanted) {
		return fmt.Errorf("columns %q instead of %q", got, wanted)
	}
	if len(a.rows) != len(want.Rows)-1 {
		return fmt.Errorf("%d rows instead of %d", len(a.rows), len(want.Rows)-1)
	}

	var values []map[string]any
	for _, row := range want.Rows[1:] {
		all := map[string]any{}
		for i, cell := range row.Cells {
			value, err := parseValue(cell.Value)
			if err != nil {
				return err
			}
			all[columns[i]] = value
		}
		values = append(values, all)
	}
	anyOrder := strings.Contains(text, "ignoring element order")
	equal := func(i, j int) bool {
		for _, name := range columns {
			if !sameValue(a.rows[i][name], values[j][name], anyOrder) {
				return false
			}
		}
		return true
	}
	if strings.Contains(text, "in order") {
		for i := range values {
			if !equal(i, i) {
				return fmt.Errorf("row %d is %v instead of %v", i+1, a.rows[i], values[i])
			}
		}
		return nil
	}
	if !pairs(len(values), equal) {
		return fmt.Errorf("rows %v instead of %v", clip(a.rows), clip(values))
	}
	return nil
}

// clip formats the first rows as a string.
func clip(rows []map[string]any) string {
	text := fmt.Sprint(rows)
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return text
}
