package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// collected is a graph in memory.
type collected struct {
	nodes []Node
	edges []Edge
	notes []string
}

func (c *collected) sink() Sink {
	return Sink{
		Node: func(n Node) error { c.nodes = append(c.nodes, n); return nil },
		Edge: func(e Edge) error { c.edges = append(c.edges, e); return nil },
		Note: func(what string) { c.notes = append(c.notes, what) },
	}
}

func (c *collected) source() Source {
	return Source{
		Nodes: func(yield func(Node) error) error { return each(c.nodes, yield) },
		Edges: func(yield func(Edge) error) error { return each(c.edges, yield) },
	}
}

func each[T any](all []T, yield func(T) error) error {
	for _, one := range all {
		if err := yield(one); err != nil {
			return err
		}
	}
	return nil
}

// String returns the graph as JSON Lines and notes.
func (c *collected) String() string {
	var out bytes.Buffer
	if _, err := Write(JSONLines, &out, c.source()); err != nil {
		return err.Error()
	}
	for _, note := range c.notes {
		fmt.Fprintf(&out, "note: %s\n", note)
	}
	return out.String()
}

func read(t *testing.T, f Format, text string) (*collected, error) {
	t.Helper()
	var c collected
	content, _, err := Open(t.Context(), strings.NewReader(text), 1<<30)
	if err == nil {
		err = Read(f, content, Options{}, c.sink())
	}
	return &c, err
}

// TestFilesAreRead reads the files in testdata and compares them with their expected contents.
func TestFilesAreRead(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".want") {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Detect(name, text)
			if err != nil {
				t.Fatal(err)
			}

			c, err := read(t, f, string(text))
			got := c.String()
			if err != nil {
				got += "error: " + err.Error() + "\n"
			}
			if os.Getenv("RLM_FORMAT_UPDATE") != "" {
				if err := os.WriteFile(name+".want", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".want")
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestBadFilesAreErrors(t *testing.T) {
	skip.UnderRace(t)
	long := strings.Repeat("x", 17<<20)
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"p%d":1`, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		format     Format
		text, want string
	}{
		{JSONLines, `{"id":"a"}` + "\n" + `{"id":`, "line 2: it is not valid JSON"},
		{JSONLines, `{"labels":["A"]}`, `line 1: a node needs an "id"`},
		{JSONLines, `{"id":true}`, `the value of "id" is not an identifier`},
		{JSONLines, `{"id":""}`, `a node needs an "id"`},
		{JSONLines, `{"id":"a","labels":[1]}`, "not all texts"},
		{JSONLines, `{"id":"a","labels":{}}`, "neither a text nor a list"},
		{JSONLines, `{"id":"a","labels":[""]}`, "the label is empty"},
		{JSONLines, `{"type":"relationship","label":"X","start":{"id":"a"}}`, `needs "from" and "to"`},
		{JSONLines, `{"id":"a","n":1,"properties":{"n":2}}`, `"n" appears twice`},
		{JSONLines, `{"id":"a"} {"id":"b"}`, "text follows the object"},
		{JSONLines, `[1]`, "expected an object"},
		{JSONLines, `{"id":"a","n":123456789012345678901}`, "does not fit in 64 bits"},
		{JSONLines, `{"id":"a","n":1e999}`, "does not fit in 64 bits"},
		{JSONLines, `{"id":"a","n":` + strings.Repeat("9", 1<<20) + `}`, "does not fit in 64 bits"},
		{JSONLines, `{"id":"a","n":NaN}`, "not valid JSON"},
		{JSONLines, `{"id":"a","x":` + deep + `}`, "more than 64 levels"},
		{JSONLines, `{"id":"a\u0000"}`, "NUL"},
		{JSONLines, `{"id":"a","x":["\u0000"]}`, "NUL"},
		{JSONLines, `{"id":"a","x\u0000":1}`, "NUL"},
		{JSONLines, "{\"id\":\"a\xff\"}", "not valid UTF-8"},
		{JSONLines, `{"id":"` + strings.Repeat("a", 5000) + `"}`, "5000 bytes, more than 4096"},
		{JSONLines, `{"id":"a"` + many(20_000) + `}`, "20000 properties, more than 10000"},
		{JSONLines, `{"id":"a","m":{"x":0` + many(20_000) + `}}`, "20001 elements, more than 10000"},
		{JSONLines, `{"id":"a","x":"` + long + `"}`, "line 1: a record has more than 16777216 bytes"},
		{JSON, `{"nodes":[{"id":"a"}]`, "not valid JSON"},
		{JSON, `{"nodes":[{"id":"a"}]} 1`, "more text follows"},
		{JSON, `{"nodes":[{"id":"a"},{}]}`, "nodes[1]: a node needs"},
		{JSON, `{"nodes":{"a":{}}}`, `"nodes" is not a list`},
		{JSON, `{"a":1}`, "node_link_data"},
		{JSON, `3`, "node_link_data"},
		{JSON, `[{"id":"a"},3]`, "[1]: expected an object"},
		{JSON, `{"nodes":[{"id":"` + long + `"}]}`, "a record has more than"},
		{JSON, strings.Repeat("[", 1<<20), "[0]: "},
		{CSV, "name,age\nAda,3\n", "the header: it has neither"},
		{CSV, "", "the header"},
		{CSV, ":ID,age:number\na,3\n", `the type "number" is unknown`},
		{CSV, ":ID,age:int\na,3\nb,x\n", `line 3: column "age": "x" is not of the type int`},
		{CSV, ":ID,age:int\na,3,4\n", "line 2: it has 3 fields, and the header has 2"},
		{CSV, ":ID,age\n\"a,3\n", "line 2"},
		{CSV, ":ID,:START_ID\n", "columns of both"},
		{CSV, ":START_ID,:TYPE\n", "edges need :START_ID and :END_ID"},
		{CSV, ":ID,a,a\n", `"a" has two columns`},
		{CSV, ":ID,:ID\n", "two columns are :ID"},
		{CSV, ":ID,name\n,Ada\n", "the id is empty"},
		{CSV, ":ID,x\na,\"" + strings.Repeat("x\n", 9<<20) + "\"\n", "a record has more than"},
		{CSV, ":ID" + strings.Repeat(",a:int", 10_001) + "\n", "10002 columns, more than 10000"},
		{GraphML, `<html></html>`, "not graphml"},
		{GraphML, ``, "no element graphml"},
		{GraphML, `<graphml><graph><node id="a"></graph></graphml>`, "line 1"},
		{GraphML, `<graphml><graph><node/></graph></graphml>`, "the id is empty"},
		{
			GraphML, `<graphml><graph><node id="a"><data key="k">1</data></node></graph></graphml>`,
			`"k" of a data element is not declared`,
		},
		{GraphML, `<!DOCTYPE graphml [<!ENTITY a "aaaa">]><graphml/>`, "declares entities"},
		{GraphML, `<graphml><graph><node id="&a;"/></graph></graphml>`, "invalid character entity"},
		{GraphML, `<graphml>` + strings.Repeat("<graph>", 100), "more than 64 deep"},
		{GraphML, `<graphml><graph><node id="a"><port>` + strings.Repeat("<port>", 100), "more than 64 deep"},
		{GraphML, `<?xml version="1.0" encoding="EBCDIC"?><graphml/>`, `the encoding "EBCDIC" is unknown`},
		{GraphML, `<graphml><key id="k"/><key id="k"/></graphml>`, "declared twice"},
		{GraphML, `<graphml><default>1</default></graphml>`, "outside of a key"},
		{GraphML, `<graphml><!--` + long + `--></graphml>`, "a record has more than"},
		{
			GraphML, `<graphml><key id="k" attr.name="n" attr.type="double"/>` +
				`<graph><node id="a"><data key="k">NaN</data></node></graph></graphml>`, "finite",
		},
	} {
		t.Run(fmt.Sprintf("%.60s", c.text), func(t *testing.T) {
			_, err := read(t, c.format, c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %.60q: got %v, want %q", c.format, c.text, err, c.want)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("%s %.60q: an error of %d bytes", c.format, c.text, len(err.Error()))
			}
		})
	}
}

func pack(t *testing.T, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return packed.Bytes()
}

func TestPackedFilesAreBounded(t *testing.T) {
	skip.UnderRace(t)
	line := []byte(`{"id":"a"}` + "\n")
	for name, c := range map[string]struct {
		packed []byte
		limit  int64
		want   string
	}{
		"fits":  {pack(t, line), 1 << 20, ""},
		"mark":  {append([]byte("\xef\xbb\xbf"), line...), 1 << 20, ""},
		"large": {pack(t, bytes.Repeat(line, 1000)), 5000, "more than 5000 bytes"},
		"bomb":  {pack(t, bytes.Repeat([]byte("\n"), 80<<20)), 1 << 30, "more than 200 times"},
		"cut":   {pack(t, bytes.Repeat(line, 1000))[:30], 1 << 20, "cannot inflate"},
		"empty": {[]byte("\x1f\x8b"), 1 << 20, "cannot inflate"},
	} {
		t.Run(name, func(t *testing.T) {
			content, _, err := Open(t.Context(), bytes.NewReader(c.packed), c.limit)
			if err == nil {
				err = Read(JSONLines, content, Options{}, Sink{Node: func(Node) error { return nil }})
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	content, _, err := Open(ctx, strings.NewReader(strings.Repeat(`{"id":"a"}`+"\n", 1<<16)), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	n := 0
	err = Read(JSONLines, content, Options{}, Sink{Node: func(Node) error {
		n++
		cancel(why)
		return nil
	}})
	if !errors.Is(err, why) || n == 0 || n == 1<<16 {
		t.Errorf("%d nodes, %v", n, err)
	}
}

// TestErrorsOfTheSinkNameTheirPlace checks errors from the graph, such as that for a second node
// with the same identifier.
func TestErrorsOfTheSinkNameTheirPlace(t *testing.T) {
	full := errors.New("full")
	for f, text := range map[Format]string{
		JSONLines: `{"id":"a"}`,
		JSON:      `{"nodes":[{"id":"a"}]}`,
		CSV:       ":ID\na\n",
		GraphML:   `<graphml><graph><node id="a"/></graph></graphml>`,
	} {
		err := Read(f, strings.NewReader(text), Options{}, Sink{Node: func(Node) error { return full }})
		if !errors.Is(err, full) || !strings.ContainsAny(err.Error(), "0123456789") {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestFormatsAreDetected(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       Format
		err        string
	}{
		{"a.TTL.gz", "", Turtle, ""},
		{"a.owl", `<?xml version="1.0"?><rdf:RDF xmlns:rdf="x">`, RDFXML, ""},
		{"a.owl", "@prefix : <http://x/> .", Turtle, ""},
		{"a.owl", "<?xml version='1.0'?>\n<Ontology xmlns='x'>", "", "OWL/XML"},
		{"a.owl", "Prefix(:=<http://x/>)", "", "functional"},
		{"a.xml", "<!-- <RDF> --><graphml>", RDFXML, ""}, // the document then determines the format
		{"a.xml", "<html><body>", "", "neither GraphML nor RDF/XML"},
		{"a.json", `{"@context": {}, "@id": "x"}`, JSONLD, ""},
		{"a.json", `{"nodes": [], "links": []}`, JSON, ""},
		{"a.json", `[{"id": "a"}]`, JSON, ""},
		{"a.json", `{"id": "a"}`, JSONLines, ""},
		{"a.json", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n", JSONLines, ""},
		{"data", "<http://x/a> <http://x/b> <http://x/c> .\n", Turtle, ""},
		{"data", "# a comment\n@prefix x: <y> .", Turtle, ""},
		{"data", "id:ID\tname\n", CSV, ""},
		{"data", "hello", "", "cannot tell the format"},
		{"data", " \n", "", "is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Detect(c.name, []byte(c.head))
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %q: %q, %v, want %q %q", c.name, c.head, got, err, c.want, c.err)
			}
		})
	}
}

func TestFormatsAreNamed(t *testing.T) {
	for name, want := range map[string]Format{
		"TTL": Turtle, "turtle": Turtle, "nt": NTriples, "jsonl": JSONLines, "csv": CSV,
	} {
		t.Run(name, func(t *testing.T) {
			if f, err := Parse(name); f != want || err != nil {
				t.Errorf("%s: %q, %v", name, f, err)
			}
		})
	}
	for _, name := range []string{"", "owl", "xls"} {
		t.Run(name, func(t *testing.T) {
			if f, err := Parse(name); err == nil || !strings.Contains(err.Error(), "use one of") {
				t.Errorf("%s: %q, %v", name, f, err)
			}
		})
	}
}

func TestDocumentTypesOfRDFXML(t *testing.T) {
	entities := strings.Repeat(`<!ENTITY a "b">`, 300)
	for text, ok := range map[string]bool{
		`<?xml version="1.0"?><!DOCTYPE rdf:RDF [ <!ENTITY owl "http://www.w3.org/2002/07/owl#" >
			<!ENTITY xsd 'http://www.w3.org/2001/XMLSchema#'>]><rdf:RDF/>`: true,
		`<!DOCTYPE rdf:RDF [<!ENTITY x "http://x/">]><rdf:RDF xmlns="&x;"/>`: true,
		`<!DOCTYPE rdf:RDF [<!ENTITY x "http://x/">]><rdf:RDF xmlns="&y;"/>`: false,
		`<rdf:RDF/>`:                                                        true,
		`<!DOCTYPE rdf:RDF><rdf:RDF/>`:                                      true,
		`<!DOCTYPE r [<!ENTITY a "&b;&b;">]><r/>`:                           false,
		`<!DOCTYPE r [<!ENTITY a SYSTEM "file:///x">]><r/>`:                 false,
		`<!DOCTYPE r [<!ENTITY % a "b">]><r/>`:                              false,
		`<!DOCTYPE r [%a;]><r/>`:                                            false,
		`<!DOCTYPE r [` + entities + `]><r/>`:                               false,
		`<!DOCTYPE r [<!ENTITY a "` + strings.Repeat("x", 600) + `">]><r/>`: false,
		`<!--` + strings.Repeat("x", 2<<20) + `--><r/>`:                     false,
		``: false,
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			out, err := checkRDFXML(strings.NewReader(text))
			if (err == nil) != ok {
				t.Errorf("%.80q: %v", text, err)
			}
			if err != nil {
				return
			}
			if whole, err := io.ReadAll(out); err != nil || string(whole) != text {
				t.Errorf("%q became %q, %v", text, whole, err)
			}
		})
	}
}

func TestBracketsOfRDFAreBounded(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, 2000) }
	for _, c := range []struct {
		format Format
		text   string
		ok     bool
	}{
		{Turtle, many("("), false},
		{Turtle, many("[ <x:p> "), false},
		{TriG, many("{"), false},
		{JSONLD, many("["), false},
		{Turtle, many("( ) [ ] "), true},
		{Turtle, `"` + many("(") + `"`, true},
		{Turtle, `"\\"` + many("("), false},
		{Turtle, `"\"` + many("(") + `"`, true},
		{Turtle, `"" ` + many("("), false},
		{Turtle, "@a''(" + many("(") + "@", true},
		{Turtle, `"""a"` + many("(") + `""" ` + many("["), false},
		{Turtle, "<http://x/" + many("(") + ">", true},
		{Turtle, "# " + many("(") + "\n", true},
		{Turtle, "# \n" + many("("), false},
		{Turtle, many(`x:a\( `), true},
		{JSONLD, `["` + many("[") + `\"[[", ` + many("1,") + "]", true},
		{NTriples, many("("), true},
		{RDFXML, many("<a>"), false},
		{RDFXML, many("<a>") + many("</a>"), false},
		{RDFXML, many("<a b='/>' c=\"<\">x</a>"), true},
		{RDFXML, many("<a/><b\n/>"), true},
		{RDFXML, "<a>", false},
		{RDFXML, "<a", false},
		{RDFXML, "<>", false},
		{RDFXML, "<?xml version='1.0'?><!-- <a> <!> --><!--><a>--><a><![CDATA[<b>]]]></a>\n", true},
		{RDFXML, `<!DOCTYPE r><r/>`, true},
		{RDFXML, "<!DOCTYPE r [ <!ENTITY a \"b\"> <!ENTITY c 'd]>'>\n] ><r>&a;</r>", true},
		{RDFXML, "<!-- <a>", false},
	} {
		t.Run(fmt.Sprintf("%.60s", c.text), func(t *testing.T) {
			source := strings.ReplaceAll(c.text, "@", "'''")
			text, err := io.ReadAll(boundNesting(c.format, strings.NewReader(source)))
			if (err == nil) != c.ok || c.ok && string(text) != source {
				t.Errorf("%s %.40q: %v", c.format, c.text, err)
			}
		})
	}
}
