package graphtruth

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// nativePython is the variable that names a Python with the wheels of
// scripts/graph/requirements.txt.
const nativePython = "RLM_GRAPH_PYTHON"

// people is the number of people in the data.
const people = 50

// world is a property graph in the format that native.py reads.
type world struct {
	Nodes      []worldNode    `json:"nodes"`
	Edges      []worldEdge    `json:"edges"`
	Parameters map[string]any `json:"parameters"`
}

type worldNode struct {
	ID         string         `json:"id"`
	Label      string         `json:"label"`
	Properties map[string]any `json:"properties"`
}

type worldEdge struct {
	From       string         `json:"from"`
	To         string         `json:"to"`
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
}

// makeWorld returns people who live in cities, work at companies, know each other, and report to
// each other.
func makeWorld() world {
	w := world{Parameters: map[string]any{"ids": []string{"p2", "p3", "p999"}, "age": 34}}
	node := func(id, label string, properties map[string]any) {
		w.Nodes = append(w.Nodes, worldNode{id, label, properties})
	}
	edge := func(from, kind, to string, properties map[string]any) {
		w.Edges = append(w.Edges, worldEdge{from, to, kind, properties})
	}
	for i := range 6 {
		node(fmt.Sprintf("c%d", i), "City", map[string]any{"name": fmt.Sprintf("city %d", i)})
	}
	for i := range 5 {
		id := fmt.Sprintf("o%d", i)
		node(id, "Company", map[string]any{"name": fmt.Sprintf("company %d", i)})
		edge(id, "BASED_IN", fmt.Sprintf("c%d", (i*2)%6), map[string]any{})
	}
	for i := range people {
		id := fmt.Sprintf("p%d", i)
		properties := map[string]any{
			"name": fmt.Sprintf("person %d", i), "age": 20 + (i*13)%47, "score": float64(i*i%97) / 4,
		}
		if i%3 == 0 {
			properties["nick"] = fmt.Sprintf("nick %d", i)
		}
		node(id, "Person", properties)
		edge(id, "LIVES_IN", fmt.Sprintf("c%d", i*7%6), map[string]any{})
		if i%4 != 1 {
			role := []string{"engineer", "manager"}[i%2]
			edge(id, "WORKS_AT", fmt.Sprintf("o%d", i*3%5), map[string]any{"role": role})
		}
		if i > 0 {
			edge(id, "REPORTS_TO", fmt.Sprintf("p%d", i/3), map[string]any{})
		}
		if i%9 == 4 {
			continue
		}
		for step := range 1 + i%3 {
			to := fmt.Sprintf("p%d", (i+1+step*step)%people)
			edge(id, "KNOWS", to, map[string]any{"since": 2000 + (i*step)%25})
		}
	}
	return w
}

// makeFacts returns, in Turtle, the ontology of testdata and facts about people.
func makeFacts(t *testing.T) string {
	t.Helper()
	ontology, err := os.ReadFile("testdata/ontology.ttl")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(ontology)
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+" .\n", args...) }
	for i := range 6 {
		line("ex:city%d a ex:City ; ex:name \"city %[1]d\" ; ex:locatedIn ex:region%d", i, i%3)
	}
	for i := range 3 {
		line("ex:region%d a ex:Region ; ex:locatedIn ex:country%d", i, i%2)
	}
	line("ex:country0 a ex:Country ; ex:locatedIn ex:continent")
	line("ex:country1 a ex:Country ; ex:locatedIn ex:continent")
	for i := range 4 {
		line("ex:company%d a ex:%s ; ex:headquarteredIn ex:city%d", i, []string{"Company", "TechFirm"}[i%2], i)
		line("ex:company%d ex:mainOffice ex:office%[1]d", i)
	}
	line("ex:company0 ex:mainOffice ex:hall")
	line("ex:school0 a ex:School")

	for i := range people {
		line("ex:person%d ex:name \"person %[1]d\" ; ex:age %d ; ex:score %.2f ; ex:livesIn ex:city%d", i,
			20+(i*13)%47, float64(i*i%97)/4, i*7%6)
		line("ex:person%d ex:born \"%d-%02d-%02d\"^^xsd:date", i, 1960+(i*13)%47, 1+i%12, 1+i%28)
		line("ex:person%d a ex:%s", i, []string{"Person", "Engineer", "Manager", "Person"}[i%4])
		if i%4 != 3 {
			line("ex:person%d ex:worksFor ex:company%d", i, i%3)
		} else {
			line("ex:person%d ex:studiesAt ex:school0", i)
		}
		if i%3 == 0 {
			line("ex:person%d ex:nick \"nick %[1]d\"", i)
		}
		if i%2 == 1 {
			line("ex:person%d ex:friendOf ex:person%d", i, (i+6)%people)
		}
		if i > 0 && i < 14 {
			line("ex:person%d ex:parentOf ex:person%d", i/3, i)
		}
	}
	line(`ex:person5 ex:email "five@example.org"`)
	line(`ex:alias0 ex:email "five@example.org"`)
	return b.String()
}

// readQueries returns the queries in a file of testdata, and copies the file into a folder.
func readQueries(t *testing.T, folder, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, name), text)
	return strings.Split(strings.TrimSpace(string(text)), "\n\n")
}

func writeFile(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// nativeAnswers is the output of native.py.
type nativeAnswers struct {
	SPARQL []json.RawMessage `json:"sparql"`
	Cypher []struct {
		Columns []string `json:"columns"`
		Rows    [][]any  `json:"rows"`
		Error   string   `json:"error"`
	} `json:"cypher"`
}

// TestAnswersAreThoseOfOtherEngines compares the answers to the same queries on the same data in
// package graph, in rdflib with owlrl, and in kuzu.
func TestAnswersAreThoseOfOtherEngines(t *testing.T) {
	t.Parallel()
	python := os.Getenv(nativePython)
	if python == "" {
		t.Skipf("%s names no Python: make graph-native sets it", nativePython)
	}
	folder := t.TempDir()
	w, facts := makeWorld(), makeFacts(t)
	graphJSON, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "graph.json"), graphJSON)
	writeFile(t, filepath.Join(folder, "facts.ttl"), []byte(facts))
	sparql := readQueries(t, folder, "queries.rq")
	cypher := readQueries(t, folder, "queries.cypher")

	command := exec.CommandContext(t.Context(), python, "testdata/native.py", folder)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var native nativeAnswers
	if err := json.Unmarshal(output, &native); err != nil {
		t.Fatal(err)
	}
	if len(native.SPARQL) != len(sparql) || len(native.Cypher) != len(cypher) {
		t.Fatalf("%d answers to %d queries of SPARQL, %d to %d of Cypher", len(native.SPARQL), len(sparql),
			len(native.Cypher), len(cypher))
	}

	store := newStore(t)
	store.reason = true
	if err := store.load([]byte(facts), "turtle", ""); err != nil {
		t.Fatal(err)
	}
	for i, query := range sparql {
		t.Run("SPARQL "+title(query), func(t *testing.T) { compareSPARQL(t, store, query, native.SPARQL[i]) })
	}
	properties := newStore(t)
	properties.fill(t, w)
	for i, query := range cypher {
		t.Run("Cypher "+title(query), func(t *testing.T) {
			want := native.Cypher[i]
			if want.Error != "" {
				t.Fatalf("kuzu: %s", want.Error)
			}
			compareCypher(t, properties, query, w.Parameters, want.Columns, want.Rows)
		})
	}
}

// title returns the comment at the beginning of a query.
func title(query string) string {
	line, _, _ := strings.Cut(query, "\n")
	return strings.TrimLeft(line, "#/ ")
}

func compareSPARQL(t *testing.T, store *store, query string, native json.RawMessage) {
	t.Helper()
	text, err := store.sparql(query, "", "json")
	if err != nil {
		t.Fatal(err)
	}
	var want, got answer
	var lines string
	if err := json.Unmarshal(native, &lines); err == nil {
		want.isGraph, got.isGraph = true, true
		want.facts, err = parseNTriples(lines)
		if err != nil {
			t.Fatal(err)
		}
		if got.facts, err = parseNTriples(string(text)); err != nil {
			t.Fatal(err)
		}
	} else {
		if want, err = parseJSON(native); err != nil {
			t.Fatal(err)
		}
		if got, err = parseJSON(text); err != nil {
			t.Fatal(err)
		}
	}
	want.ordered = orderBy.MatchString(query) && !strings.Contains(query, "{ {")
	if !want.isGraph && want.truth == nil && len(want.rows) == 0 || want.isGraph && len(want.facts) == 0 {
		t.Fatal("the other engine has no rows, so this compares nothing")
	}
	for _, a := range []answer{got, want} {
		for _, row := range a.rows {
			for name, value := range row {
				row[name] = plain(value)
			}
		}
	}
	if failure := got.differs(want, false); failure != "" {
		t.Errorf("%s\ngot  %v\nwant %v", failure, got.rows, want.rows)
	}
}

// plain returns a number in a canonical form, because engines write averages and sums in different
// forms.
func plain(t term) term {
	switch strings.TrimPrefix(t.datatype, xsdNS) {
	case "integer", "decimal", "double", "float":
		if number, err := strconv.ParseFloat(t.value, 64); err == nil {
			return newLiteral(strconv.FormatFloat(number, 'g', 12, 64), "number", "")
		}
	}
	return t
}

func compareCypher(
	t *testing.T, store *store, query string, parameters map[string]any, columns []string, rows [][]any,
) {
	t.Helper()
	used := map[string]any{}
	for name, value := range parameters {
		if strings.Contains(query, "$"+name) {
			used[name] = value
		}
	}
	got, err := store.cypher(query, used, false)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.columns, columns) {
		t.Errorf("columns %q, want %q", got.columns, columns)
	}
	if len(rows) == 0 {
		t.Fatal("the other engine has no rows, so this compares nothing")
	}

	lists := make([][]any, len(got.rows))
	for i, row := range got.rows {
		for _, column := range got.columns {
			lists[i] = append(lists[i], row[column])
		}
	}
	equal := func(i, j int) bool {
		return slices.EqualFunc(lists[i], rows[j], alike)
	}
	if len(lists) != len(rows) || !pairs(len(rows), equal) {
		t.Errorf("rows differ\ngot  %v\nwant %v", lists, rows)
		return
	}
	if strings.Contains(query, "ORDER BY") && !strings.Contains(query, "WITH p ORDER BY") {
		for i := range rows {
			if !equal(i, i) {
				t.Errorf("row %d is %v, want %v", i, lists[i], rows[i])
			}
		}
	}
}

// alike compares a value with one that was transferred as JSON. The order of a list from collect is
// not specified.
func alike(got, want any) bool {
	switch got := got.(type) {
	case int64:
		return alike(float64(got), want)
	case float64:
		number, ok := want.(float64)
		return ok && math.Abs(got-number) <= 1e-9*math.Max(1, math.Abs(number))
	case []any:
		list, ok := want.([]any)
		return ok && len(list) == len(got) && pairs(len(got), func(i, j int) bool { return alike(got[i], list[j]) })
	}
	return reflect.DeepEqual(got, want)
}
