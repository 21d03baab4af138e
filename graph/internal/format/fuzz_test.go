package format

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// addFiles adds the files in testdata whose names have one of the endings.
func addFiles(f *testing.F, ends ...string) {
	f.Helper()
	for _, end := range ends {
		names, err := filepath.Glob("testdata/*" + end)
		if err != nil || len(names) == 0 {
			f.Fatal(end, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
}

// fuzzFormat reads documents of a format. A graph that can be read is written as JSON Lines, JSON
// and GraphML, and must be the same when it is read again.
func fuzzFormat(f *testing.F, format Format) {
	f.Helper()
	f.Fuzz(func(t *testing.T, text []byte) {
		var c collected
		content, _, err := Open(t.Context(), bytes.NewReader(text), 1<<20)
		if err == nil {
			err = Read(format, content, Options{}, c.sink())
		}
		if err != nil {
			return
		}

		for _, other := range []Format{JSONLines, JSON, GraphML} {
			checkRoundTrip(t, other, &c)
		}
	})
}

// checkRoundTrip writes a graph and reads it again.
func checkRoundTrip(t *testing.T, f Format, c *collected) {
	t.Helper()
	var out bytes.Buffer
	notes, err := Write(f, &out, c.source())
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(t, f, out.String())
	if err != nil {
		t.Fatalf("%s: %v\n%s", f, err, out.Bytes())
	}
	if len(notes) > 0 { // a different graph, as the notes report
		return
	}

	if want := (&collected{nodes: c.nodes, edges: c.edges}).String(); got.String() != want {
		t.Errorf("%s: got\n%s\nwant\n%s\nfile\n%s", f, got, want, out.Bytes())
	}
}

func FuzzJSONLines(f *testing.F) {
	addFiles(f, ".jsonl")
	fuzzFormat(f, JSONLines)
}

func FuzzJSON(f *testing.F) {
	addFiles(f, ".json")
	fuzzFormat(f, JSON)
}

func FuzzCSV(f *testing.F) {
	addFiles(f, ".csv", ".tsv")
	fuzzFormat(f, CSV)
}

func FuzzGraphML(f *testing.F) {
	addFiles(f, ".graphml")
	fuzzFormat(f, GraphML)
}

func FuzzDetect(f *testing.F) {
	addFiles(f, ".json", ".jsonl", ".csv", ".graphml")
	f.Add([]byte("\x1f\x8b\x08"))
	f.Add([]byte("@prefix : <http://x/> ."))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, head, err := Open(t.Context(), bytes.NewReader(text), 1<<20)
		if err != nil {
			return
		}
		if f, err := Detect("file", head); (f == "") == (err == nil) {
			t.Errorf("%q, %v", f, err)
		}
	})
}

// FuzzNesting reads RDF documents, which must remain unchanged.
func FuzzNesting(f *testing.F) {
	for i, text := range []string{
		`:a :b """x"y\"(""" , [ :c ( 1 ) ] # (`, `{"@id": "a", "b": ["\"{"]}`,
		`<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "b">]><r a='>'><b/><![CDATA[<]]></r>`,
	} {
		f.Add([]byte(text), uint8(i))
	}
	f.Fuzz(func(t *testing.T, text []byte, which uint8) {
		format := []Format{Turtle, JSONLD, RDFXML}[which%3]
		var whole bytes.Buffer
		_, err := whole.ReadFrom(boundNesting(format, bytes.NewReader(text)))
		if err == nil && !bytes.Equal(whole.Bytes(), text) {
			t.Errorf("%q became %q", text, whole.Bytes())
		}
	})
}

func FuzzRDFXMLDoctype(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "b">]><r/>`))
	f.Add([]byte(`<!DOCTYPE r [<!ENTITY a "&b;">]><r/>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := checkRDFXML(bytes.NewReader(text))
		if err != nil {
			return
		}
		var whole bytes.Buffer
		if _, err := whole.ReadFrom(in); err != nil || !bytes.Equal(whole.Bytes(), text) {
			t.Errorf("%q became %q, %v", text, whole.Bytes(), err)
		}
	})
}

// everything returns a graph with each kind of value, and with names that formats use.
func everything() *collected {
	return &collected{
		nodes: []Node{
			{ID: "a", Labels: []string{"Person", "au:Agent"}, Properties: map[string]any{
				"id": "x", "type": "node", "properties": int64(1), "label": "L", "name": "Ä \"<&>\" \r\n\t,;|",
				"int": int64(math.MinInt64), "float": 1.0, "tiny": 5e-324, "big": 1e300, "yes": true,
				"list": []any{int64(1), "a;b", nil, []any{}}, "texts": []any{"a", "b"},
				"map": map[string]any{"k": []any{false}}, "mixed": int64(1), "empty": "",
			}},
			{ID: "b c", Labels: []string{}, Properties: map[string]any{"mixed": "1", "source": "s", "target": "t"}},
			{ID: "ü/#?", Labels: []string{"[x"}, Properties: map[string]any{"key": 2.5}},
		},
		edges: []Edge{
			{ID: "1", Type: "KNOWS", From: "a", To: "b c", Properties: map[string]any{
				"from": "x", "to": "y", "start": int64(1), "end": int64(2), "key": "k", "id": "i", "type": "t",
			}},
			{Type: "has part", From: "a", To: "a", Properties: map[string]any{"relation": "r", "since": int64(3)}},
		},
	}
}

func TestGraphsSurviveTheirFiles(t *testing.T) {
	for _, f := range []Format{JSONLines, JSON, GraphML} {
		checkRoundTrip(t, f, everything())
		var out bytes.Buffer
		if notes, err := Write(f, &out, everything().source()); err != nil || len(notes) > 0 {
			t.Errorf("%s: %q, %v", f, notes, err)
		}
	}
}

func TestLabelsAreNotMistaken(t *testing.T) {
	c := &collected{
		nodes: []Node{{ID: "a", Properties: map[string]any{"labels": "x", "c": "\x01"}}},
		edges: []Edge{{Type: "T", From: "a", To: "a", Properties: map[string]any{"label": "T"}}},
	}
	for _, f := range []Format{JSONLines, JSON} {
		checkRoundTrip(t, f, c)
	}

	var out bytes.Buffer
	notes, err := Write(GraphML, &out, c.source())
	if err != nil || len(notes) != 3 {
		t.Fatalf("%q, %v", notes, err)
	}
	got, err := read(t, GraphML, out.String())
	if err != nil || got.nodes[0].Properties["labels_"] != "x" || got.edges[0].Properties["label_"] != "T" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestCSVSurvives(t *testing.T) {
	c := &collected{
		nodes: []Node{
			{ID: "a", Labels: []string{"A", "B"}, Properties: map[string]any{
				"n": int64(-3), "f": 2.0, "s": "x,\"y\"\n", "b": false,
				"list": []any{int64(1), int64(2)}, "texts": []any{"p", "q"},
			}},
			{ID: "b", Properties: map[string]any{"f": 2.5, "a:b(c){d}": "e"}},
		},
		edges: []Edge{{Type: "T", From: "a", To: "b", Properties: map[string]any{"w": 0.5}}},
	}
	got, notes := throughCSV(t, c)
	if len(notes) > 0 || !reflect.DeepEqual(got.String(), c.String()) {
		t.Errorf("got\n%s\nwant\n%s\nnotes %q", got, c, notes)
	}

	lossy := everything()
	got, notes = throughCSV(t, lossy)
	if len(notes) < 4 || len(got.nodes) != 3 || len(got.edges) != 2 {
		t.Errorf("%s, %q", got, notes)
	}
	if text := got.nodes[0].Properties["map"]; text != `{"k":[false]}` {
		t.Errorf("a map became %v", text)
	}
}

func throughCSV(t *testing.T, c *collected) (*collected, []string) {
	t.Helper()
	var nodes, edges strings.Builder
	notes, err := WriteCSV(&nodes, &edges, c.source())
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(t, CSV, nodes.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, nodes.String())
	}
	more, err := read(t, CSV, edges.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, edges.String())
	}

	return &collected{nodes: got.nodes, edges: more.edges}, notes
}
