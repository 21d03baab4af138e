package graph_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/graph"
)

// write creates a folder of files.
func write(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func pack(tb testing.TB, text string) string {
	tb.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return packed.String()
}

// wantError fails if an error does not contain the string want.
func wantError(tb testing.TB, err error, want string) {
	tb.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		tb.Errorf("got %v, want %q", err, want)
	}
	if err != nil && len(err.Error()) > 2000 {
		tb.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func TestLoad(t *testing.T) {
	g := open(t, graph.Config{})
	dir := write(t, map[string]string{
		"ontology.ttl": "@prefix au: <" + graph.Namespace + "> .\n" +
			"@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n" +
			"au:Episode rdfs:subClassOf au:Memory . au:e1 a au:Episode ; au:text \"from RDF\" .",
		"a/edges.jsonl": `{"from": "e1", "to": "m1", "type": "ABOUT"}` + "\n" +
			`{"from": "m1", "to": "p1", "type": "BY"}`,
		"m.jsonl.gz":   pack(t, `{"id": "m1", "type": "memory", "score": 1.5}`+"\n"),
		"people-1.csv": "p1,Ada,Person\n", "people_2.csv": "p2,Jim,Person\n",
		"people-header.csv": "id:ID,name,:LABEL{x}\n",
		"more.csv":          "id:ID;name;:LABEL\np3;Zoe;Person|Admin\n",
		"README.md":         "# no graph", ".hidden/x.ttl": "not turtle", "empty.txt": "",
		"links.json": `{"nodes":[{"id":"n1"}],"links":[{"source":"n1","target":"p2"}]}`,
	})
	outside := write(t, map[string]string{"secret.ttl": "<x:a> <x:b> <x:c> ."})
	if err := os.Symlink(filepath.Join(outside, "secret.ttl"), filepath.Join(dir, "link.ttl")); err != nil {
		t.Fatal(err)
	}

	done, err := g.Load(t.Context(), graph.LoadOptions{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if done.Nodes != 5 || done.Edges != 3 || len(done.Files) != 8 {
		t.Errorf("%+v", done)
	}
	notes := strings.Join(done.Notes, "\n")
	for _, want := range []string{
		"a link or a special file", "3 ×: a file in a folder", "without a type became RELATED",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q: %q", want, notes)
		}
	}

	const path = "MATCH (e {id: 'e1'})-[:ABOUT]->(m:memory)-[:BY]->(p:Person) " +
		"RETURN e.text AS text, m.score AS score, p.name AS name"
	if got := rows(t, g, path, nil); got != "[text score name] [map[name:Ada score:1.5 text:from RDF]]" {
		t.Error(got)
	}
	if got := rows(t, g, "MATCH (n:Admin) RETURN n.name AS name", nil); got != "[name] [map[name:Zoe]]" {
		t.Error(got)
	}

	// The second load adds no further nodes.
	before, err := g.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Load(t.Context(), graph.LoadOptions{}, filepath.Join(dir, "m.jsonl.gz")); err != nil {
		t.Fatal(err)
	}
	if after, err := g.Stats(t.Context()); err != nil || after.Nodes != before.Nodes {
		t.Errorf("%d nodes, before %d, %v", after.Nodes, before.Nodes, err)
	}
}

// TestConflictsAreCounted checks that a property that a node already has keeps one of its values.
func TestConflictsAreCounted(t *testing.T) {
	g := open(t, graph.Config{})
	dir := write(t, map[string]string{
		"a.jsonl": `{"id": "a", "name": "Ann", "tags": ["x"], "age": 1}` + "\n" + `{"id": "b", "name": "Bob"}`,
		"b.jsonl": `{"id": "a", "name": "Anna", "tags": ["x"], "city": "Rome"}` + "\n" +
			`{"id": "a", "tags": ["y"]}` + "\n" + `{"id": "b", "name": "Bob"}`,
	})
	done, err := g.Load(t.Context(), graph.LoadOptions{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := `2 ×: a property of a node has several values, of which the last counts, such as ` +
		`"name" of "a", "tags" of "a"`
	if len(done.Notes) != 1 || done.Notes[0] != want {
		t.Errorf("%q", done.Notes)
	}
	if got := rows(t, g, "MATCH (n {id: 'a'}) RETURN n.name AS name, n.age AS age", nil); got !=
		"[name age] [map[age:1 name:Anna]]" {
		t.Error(got)
	}
}

func TestLoadIsAllOrNothing(t *testing.T) {
	g := open(t, graph.Config{})
	deep := strings.Repeat("[", 100_000)
	for name, c := range map[string]struct{ text, want string }{
		"a.jsonl": {`{"id":"a"}` + "\n{", `a.jsonl": line 2: it is not valid JSON`},
		"b.jsonl": {
			`{"id":"a"}` + "\n" + `{"from":"a","to":"b","type":"T"}`,
			`line 2: the edge T from "a" to "b": the graph has no node "b": add it`,
		},
		"b2.jsonl": {
			`{"id":"a"}` + "\n" + `{"from":"b","to":"c","type":"T"}`,
			`the graph has no node "b" and no node "c": add it, or leave such edges out`,
		},
		"c.json": {
			`{"nodes":[{"id":"a"}],"edges":[{"source":"a","target":"a"},{"source":"a","target":"b"}]}`,
			`edge 1: the edge RELATED from "a" to "b"`,
		},
		"d.csv":     {"a,b\n1,2\n", "d.csv\": the header: it has neither"},
		"e.graphml": {"<graphml>", "e.graphml\": line 1"},
		"f.ttl":     {"@prefix : <http://x/> .\n:a :b", "f.ttl\": "},
		"g.rdf":     {`<!DOCTYPE r [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><r/>`, "short entities"},
		"h.jsonld": {
			`{"@context": "http://127.0.0.1:1/context", "@id": "x:a", "name": "b"}`,
			"a remote context, which is never fetched",
		},
		"i.jsonld": {`{"@id":"x:a","x:b":` + deep, "line 1: more than 1000 brackets or elements are open"},
		"j.nt":     {"<x:a> <x:b> \"\xff\" .", "j.nt\": "},
		"k.ttl": {
			"<x:a> <x:b> " + strings.Repeat("(", 100_000), "line 1: more than 1000 brackets or elements are open",
		},
		"p.rdf": {
			`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">` +
				strings.Repeat("<x:a>", 20_000), "line 1: more than 1000 brackets or elements are open",
		},
		"q.rdf": {
			`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/"><x:a>`,
			"line 1: the document ends within an element",
		},
		"r.jsonld":     {`{"@id":"x:a","x:b":"c"`, "r.jsonld\": "},
		"s.nt":         {`<x:a> <x:b>`, "s.nt\": "},
		"t.nq":         {"<x:a> <x:b> <x:c> .\n<x:a> <x:b> <x:c> <x:g>", "t.nq\": "},
		"l.ttl.gz":     {pack(t, "<x:a>")[:12], "cannot inflate"},
		"m.txt":        {"hello", "cannot tell the format"},
		"n.ttl.gz.gz":  {pack(t, pack(t, "<x:a> <x:b> <x:c> .")), "n.ttl.gz.gz\": "},
		"o-header.csv": {":ID,name\n", "no file has the rows of this header"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{name: c.text, "good.jsonl": `{"id":"good"}`})
			good, bad := filepath.Join(dir, "good.jsonl"), filepath.Join(dir, name)
			_, err := g.Load(t.Context(), graph.LoadOptions{}, good, bad)
			wantError(t, err, c.want)
			if got := rows(t, g, "MATCH (n) RETURN count(n) AS n", nil); got != "[n] [map[n:0]]" {
				t.Errorf("the graph has changed: %s", got)
			}
		})
	}
}

func TestPathsThatCannotBeLoaded(t *testing.T) {
	g := open(t, graph.Config{})
	dir := write(t, map[string]string{"README.md": "no graph", "big.nt": strings.Repeat("<x:a> <x:b> <x:c> .\n", 100)})
	for _, c := range []struct {
		o     graph.LoadOptions
		paths []string
		want  string
	}{
		{graph.LoadOptions{}, nil, "without files"},
		{graph.LoadOptions{}, []string{filepath.Join(dir, "none")}, "no such file"},
		{graph.LoadOptions{}, []string{filepath.Join(dir, "README.md")}, "cannot tell the format"},
		{graph.LoadOptions{}, []string{os.DevNull}, "not a regular file"},
		{graph.LoadOptions{Format: "xls"}, []string{dir}, `unknown format "xls"`},
		{graph.LoadOptions{MaxBytes: 100}, []string{filepath.Join(dir, "big.nt")}, "more than 100 bytes"},
	} {
		_, err := g.Load(t.Context(), c.o, c.paths...)
		wantError(t, err, c.want)
	}

	empty := write(t, map[string]string{"README.md": "no graph"})
	_, err := g.Load(t.Context(), graph.LoadOptions{}, empty)
	wantError(t, err, "JSON Lines (.jsonl)")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := g.Load(ctx, graph.LoadOptions{}, filepath.Join(dir, "big.nt")); err == nil {
		t.Error("a load goes on after its context")
	}
}

func TestEdgesOfMissingNodesMayBeLeftOut(t *testing.T) {
	g := open(t, graph.Config{})
	const n = 20_000 // several batches
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"id":"n%d"}`+"\n", i)
		fmt.Fprintf(&text, `{"from":"n%d","to":"n%d","type":"NEXT","number":%d}`+"\n", i, (i+1)%n, i)
	}
	fmt.Fprintln(&text, `{"from":"n1","to":"x1","type":"T"}`)
	fmt.Fprintln(&text, `{"from":"x2","to":"n1","type":"T"}`)
	file := filepath.Join(write(t, map[string]string{"a.jsonl": text.String()}), "a.jsonl")

	_, err := g.Load(t.Context(), graph.LoadOptions{MaxMissing: 1}, file)
	wantError(t, err, `line 40002: the edge T from "x2"`)
	done, err := g.Load(t.Context(), graph.LoadOptions{MaxMissing: 2}, file)
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(done.Notes, "\n")
	if done.Nodes != n || done.Edges != n || done.Missing != 2 ||
		!strings.HasPrefix(notes, "2 ×: an edge was left out") ||
		!strings.Contains(notes, `line 40001: the edge T from "n1" to "x1"`) {
		t.Errorf("%+v", done)
	}
	got := rows(t, g, "MATCH (a)-[r:NEXT]->(b) RETURN count(r) AS n, sum(r.number) AS s", nil)
	if want := fmt.Sprintf("[n s] [map[n:%d s:%d]]", n, n*(n-1)/2); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDumpsAreLoadedAgain(t *testing.T) {
	g := open(t, graph.Config{})
	err := g.Update(t.Context(), func(u *graph.Update) error {
		for i := range 3000 {
			properties := map[string]any{
				"name": fmt.Sprintf("n %d\n\"<&>'", i), "score": float64(i), "count": i, "even": i%2 == 0,
				"tags": []any{"a", "b"}, "text": strings.Repeat("x", i%200),
			}
			if i%2 == 0 {
				delete(properties, "text")
			}
			labels := []string{"Made", "Odd"}[:1+i%2]
			err := u.AddNode(graph.Node{ID: fmt.Sprint("n", i), Labels: labels, Properties: properties})
			if err != nil {
				return err
			}
		}
		for i := range 3000 {
			edge := graph.Edge{From: fmt.Sprint("n", i), To: fmt.Sprint("n", (i*7)%3000), Type: "NEXT"}
			edge.Properties = map[string]any{"w": 0.5}
			if err := u.AddEdge(edge); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := dump(t, g, "jsonl")

	for _, format := range []string{"jsonl", "json", "graphml", "csv"} {
		t.Run(format, func(t *testing.T) {
			var dir string
			if format == "csv" {
				var nodes, edges bytes.Buffer
				notes, err := g.DumpCSV(t.Context(), &nodes, &edges)
				if err != nil || len(notes) > 0 {
					t.Fatalf("%q, %v", notes, err)
				}
				dir = write(t, map[string]string{"nodes.csv": nodes.String(), "edges.csv": edges.String()})
			} else {
				dir = write(t, map[string]string{"a." + format: dump(t, g, format)})
			}

			again := open(t, graph.Config{})
			done, err := again.Load(t.Context(), graph.LoadOptions{}, dir)
			if err != nil || done.Nodes != 3000 || done.Edges != 3000 {
				t.Fatalf("%+v, %v", done, err)
			}
			if got := dump(t, again, "jsonl"); got != want {
				t.Errorf("got\n%.500s\nwant\n%.500s", got, want)
			}
		})
	}
	_, err = g.Dump(t.Context(), &bytes.Buffer{}, "csv")
	wantError(t, err, "two files")
	_, err = g.Dump(t.Context(), &bytes.Buffer{}, "xls")
	wantError(t, err, "unknown format")
}

func dump(tb testing.TB, g *graph.Graph, format string) string {
	tb.Helper()
	var out bytes.Buffer
	notes, err := g.Dump(tb.Context(), &out, format)
	if err != nil || len(notes) > 0 {
		tb.Fatalf("%s: %q, %v", format, notes, err)
	}
	return out.String()
}

// TestRDFIsDumpedAndLoaded compares the facts after a round trip through each format.
func TestRDFIsDumpedAndLoaded(t *testing.T) {
	g := open(t, graph.Config{})
	load(t, g, `@prefix : <http://x/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
		:a a :T ; :name "Ä \"\n<&>"@de ; :n 1, 2.5, 1e3, true ; :d "2020-01-01"^^xsd:date .
		:a :list (1 2) ; :b [ :c :d ] .`)
	count := func(g *graph.Graph) int {
		stats, err := g.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return stats.Triples
	}
	for format, end := range map[string]string{
		"turtle": "ttl", "ntriples": "nt", "trig": "trig", "nquads": "nq", "rdfxml": "rdf", "jsonld": "jsonld",
	} {
		t.Run(format, func(t *testing.T) {
			file := filepath.Join(write(t, map[string]string{"a." + end: dump(t, g, format)}), "a."+end)
			again := open(t, graph.Config{})
			if _, err := again.Load(t.Context(), graph.LoadOptions{}, file); err != nil {
				t.Errorf("%s: %v", format, err)
				return
			}
			if got, want := count(again), count(g); got != want {
				t.Errorf("%s: %d facts, want %d", format, got, want)
			}
		})
	}
}

// TestAFileIsLoadedOnce checks that a file named twice, and by its folder, is loaded once.
func TestAFileIsLoadedOnce(t *testing.T) {
	g := open(t, graph.Config{})
	dir := write(t, map[string]string{"a.jsonl": `{"id":"a"}` + "\n" + `{"from":"a","to":"a","type":"T"}`})
	name := filepath.Join(dir, "a.jsonl")
	loaded, err := g.Load(t.Context(), graph.LoadOptions{}, name, filepath.Join(dir, ".", "a.jsonl"), dir)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, rows(t, g, "MATCH ()-[r]->() RETURN count(r) AS n", nil), "[n] [map[n:1]]")
	expect(t, fmt.Sprint(len(loaded.Files), loaded.Notes), "1 [2 ×: a file was named twice, and is loaded once]")
}

// TestRDFSaysWhatItLacks checks the notes about a property graph written as RDF, and about a graph
// that contains only facts.
func TestRDFSaysWhatItLacks(t *testing.T) {
	g := open(t, graph.Config{})
	load(t, g, "@prefix e: <http://e/> . e:a a e:some_class ; e:KNOWS e:b .")
	notes, err := g.Dump(t.Context(), io.Discard, "turtle")
	if err != nil || len(notes) > 0 {
		t.Errorf("facts alone: %v (%v)", notes, err)
	}

	g = open(t, graph.Config{})
	err = g.Update(t.Context(), func(u *graph.Update) error {
		since := map[string]any{"since": 1}
		a := graph.Node{ID: "a", Labels: []string{"some_class", "Kept"}, Properties: map[string]any{
			"map": map[string]any{"x": 1}, "lists": []any{[]any{1}}, "list": []any{1, "b"},
		}}
		return errors.Join(u.AddNode(a),
			u.AddEdge(graph.Edge{ID: "e", From: "a", To: "a", Type: "HAS_PART", Properties: since}),
			u.AddEdge(graph.Edge{From: "a", To: "a", Type: "isPart", Properties: since}))
	})
	if err != nil {
		t.Fatal(err)
	}
	notes, err = g.Dump(t.Context(), io.Discard, "turtle")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, strings.Join(notes, "\n"),
		`properties of relationships are left out, because RDF has none: 2 × "since", 1 × "id"
maps and nested lists are left out, because RDF has none: 1 × "lists", 1 × "map"
labels and types are named as RDF names them, such as RunTrace and hasEditFor: 1 × "HAS_PART", 1 × "some_class"`)
}
