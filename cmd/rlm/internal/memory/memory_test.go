package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/cmd/rlm/internal/memory"
	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/repl/run"
)

func TestMain(m *testing.M) {
	if err := testcache.Use(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func openFile(tb testing.TB, path string) *memory.File {
	tb.Helper()
	f, err := memory.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// recall loads a memory into a new graph.
func recall(tb testing.TB, f *memory.File) (*graph.Graph, error) {
	tb.Helper()
	g, err := graph.Open(tb.Context(), graph.Config{CacheDir: testcache.Dir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})
	return g, f.Load(tb.Context(), g)
}

// ask returns the rows of a query as a string.
func ask(tb testing.TB, g *graph.Graph, query string) string {
	tb.Helper()
	rows, err := g.Cypher(tb.Context(), query, nil)
	if err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return fmt.Sprint(rows.Rows)
}

func answered(text string) run.Outcome {
	answer, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return run.Outcome{Status: ledger.StatusAnswered, Answer: answer, Turns: 3}
}

func TestRunsAreRecalledInTheirOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	f := openFile(t, path)
	long := strings.Repeat("é", 5_000)
	for question, outcome := range map[string]run.Outcome{
		"one?": answered("line 1\nline 2 \u2028 \"quoted\" \x00"), long: answered(long),
		"cut?": {Status: ledger.StatusPartial, Partial: "half", Reason: "the budget ran out"},
	} {
		if err := f.AddRun(question, outcome); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.AddRun("last?", answered("port 8443")); err != nil {
		t.Fatal(err)
	}

	g, err := recall(t, openFile(t, path))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ query, want string }{
		{
			"MATCH (r:RunTrace) RETURN r.sequence AS n ORDER BY n",
			"[map[n:1] map[n:2] map[n:3] map[n:4]]",
		},
		{
			"MATCH (r:RunTrace {question: 'cut?'}) RETURN r.answer AS a",
			"[map[a:half]]",
		},
		{
			"MATCH (r:RunTrace {sequence: 4}) RETURN r.answer AS a, r.turns AS n",
			"[map[a:port 8443 n:3]]",
		},
		{
			"MATCH (r:RunTrace) WHERE r.answer ENDS WITH '[TRUNCATED: 1000 chars remaining]' RETURN count(r) AS n",
			"[map[n:1]]",
		},
	} {
		t.Run(fmt.Sprintf("%.60s", c.query), func(t *testing.T) {
			if got := ask(t, g, c.query); got != c.want {
				t.Errorf("%s: %s, want %s", c.query, got, c.want)
			}
		})
	}

	views, err := g.View(t.Context(), "8443", nil)
	if err != nil {
		t.Fatal(err)
	}
	newest := fmt.Sprint(views["temporal"][0])
	found := fmt.Sprint(views["semantic"])
	if !strings.Contains(newest, "last?") || !strings.Contains(found, "port 8443") {
		t.Errorf("the views: %v", views)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the memory: %v, %v", info.Mode(), err)
	}
}

func TestFindingsOfReflectionsAndDistillations(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "memory.jsonl"))
	err := f.AddReflection("why?", reflect.Outcome{
		Status: ledger.StatusAnswered,
		Output: reflect.Analysis{
			KeyInsight: "retries hide it", RootCauseAnalysis: "a race",
			ExtractedLearnings: []reflect.Learning{
				{Learning: "lock first", Evidence: "turn 3"}, {Learning: "test it"},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.AddReflection("nothing?", reflect.Outcome{Status: ledger.StatusFailed}); err != nil {
		t.Fatal(err)
	}
	err = f.AddClusters(distill.Outcome{
		Method: "keywords", Failed: 2,
		Clusters: []distill.FailureCluster{
			{Name: "ports", Count: 2, RootCause: "a firewall", Keywords: []string{"tcp\x00"}},
		},
		Edits: []distill.ComponentEdit{
			{Component: "net", Change: "open it", Clusters: []string{"ports", "none"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	g, err := recall(t, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ query, want string }{
		{
			"MATCH (:Reflection)-[:CAUSED_BY]->(c:RootCause) RETURN c.name AS c",
			"[map[c:a race]]",
		},
		{
			"MATCH (:Reflection)-[:LEARNED]->(l:Belief) RETURN count(l) AS n",
			"[map[n:2]]",
		},
		{
			"MATCH (e:Evidence)-[:SUPPORTS]->(l:Learning) RETURN e.name AS e, l.name AS l",
			"[map[e:turn 3 l:lock first]]",
		},
		{
			"MATCH (:ChangeManifest)-[:HAS_EDIT_FOR]->()-[:ADDRESSES]->(c) RETURN c.keywords AS k",
			"[map[k:[tcp\uFFFD]]]",
		},
		{
			"MATCH (:ChangeManifest {sequence: 2})-[:HAS_CLUSTER]->()-[:CAUSED_BY]->(c) RETURN c.name",
			"[map[c.name:a firewall]]",
		},
	} {
		t.Run(fmt.Sprintf("%.60s", c.query), func(t *testing.T) {
			if got := ask(t, g, c.query); got != c.want {
				t.Errorf("%s: %s, want %s", c.query, got, c.want)
			}
		})
	}

	// This is agent-utilities' query for the edits of a manifest.
	answer, err := g.SPARQL(t.Context(), `PREFIX au: <http://agent-utilities.dev/ontology#>
		SELECT ?manifest ?edit WHERE { ?manifest a au:ChangeManifest . ?manifest au:hasEditFor ?edit . }`)
	if err != nil || len(answer.Rows) != 1 {
		t.Errorf("the edits: %v, %v", answer, err)
	}
}

func withProperty(name, value string) string {
	return fmt.Sprintf(`{"type":"node","id":"a","properties":{%q:%s}}`, name, value)
}

func TestADamagedMemoryIsAnErrorAndStays(t *testing.T) {
	node := `{"type":"node","id":"a","labels":["X"]}` + "\n"
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for damaged, want := range map[string]string{
		node + `{"type":"node","id":"b","prop`:                   "line 2: it is not valid JSON",
		"no json":                                                "line 1: ",
		node + "[1]":                                             "line 2: ",
		node + "null":                                            "expected an object",
		`{"type":"node","id":""}`:                                `needs an "id"`,
		`{"type":"node","id":"a"}}`:                              "text follows",
		`{"type":"node","id":"a"} {}`:                            "text follows",
		`{"type":"node","id":"a` + "\xff" + `"}`:                 "not valid UTF-8",
		withProperty("x", "1e999"):                               "does not fit",
		withProperty("x", `"\u0000"`):                            "NUL",
		withProperty("x", deep):                                  "64 levels",
		`{"type":"relationship","label":"X","start":{"id":"a"}}`: `"from" and "to"`,
		node + `{"type":"relationship","label":"X","start":{"id":"a"},"end":{"id":"zoe"}}`: "zoe",
		`{"type":"node","id":"` + strings.Repeat("a", 5<<20) + `"}`:                        "line 1: ",
	} {
		t.Run(fmt.Sprintf("%.60s", damaged), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "memory.jsonl")
			if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			f := openFile(t, path)
			g, err := recall(t, f)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%.80q: %v, want %s", damaged, err, want)
			}
			if got := ask(t, g, "MATCH (n) RETURN count(n) AS n"); got != "[map[n:0]]" {
				t.Errorf("%.80q: half of it is in the graph: %s", damaged, got)
			}
			_ = f.AddRun("q", answered("a")) // only the graph reports edges and properties
			if now, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(now), damaged) {
				t.Errorf("%.80q: the file was changed to %.200q, %v", damaged, now, err)
			}
		})
	}
}

func TestPeopleMayWriteLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	lines := `{"id":"note","type":"Belief","text":"ports are closed","sequence":7}

		{"from":"note","to":"note","type":"ABOUT"}`
	if err := os.WriteFile(path, []byte(lines), 0o640); err != nil {
		t.Fatal(err)
	}
	f := openFile(t, path)
	if err := f.AddRun("q", answered("a")); err != nil {
		t.Fatal(err)
	}

	g, err := recall(t, f)
	if err != nil {
		t.Fatal(err)
	}
	got := ask(t, g, "MATCH (n) RETURN n.sequence AS n ORDER BY n")
	if got != "[map[n:7] map[n:8]]" {
		t.Errorf("the sequences: %s", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the rights have changed: %v, %v", info.Mode(), err)
	}
}

func TestNoRunIsAddedToADamagedFile(t *testing.T) {
	for damaged, want := range map[string]string{
		`{"type":"node","id":"b","prop`: "line 2: unexpected end", "null": "line 2: it is not a JSON object",
		"[]": "line 2: it is no", "{\"id\":\"\xff\"}": "line 2: it is no",
		withProperty("sequence", "9223372036854775807"): "sequence is greater",
		`{"id":"a","sequence":1e300}`:                   "sequence is greater",
		`{"id":"` + strings.Repeat("a", 5<<20) + `"}`:   "too long",
	} {
		t.Run(fmt.Sprintf("%.60s", damaged), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "memory.jsonl")
			old := `{"id":"a","type":"X"}` + "\n" + damaged
			if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
			err := openFile(t, path).AddRun("q", answered("a"))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.80q: %v, want %s", damaged, err, want)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != old {
				t.Errorf("%.80q: the file was changed: %v", damaged, err)
			}
		})
	}
}

func TestNamesThatCannotBeAMemory(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "memory.ttl"):           "name it FILE.jsonl",
		filepath.Join(dir, "none", "memory.jsonl"): "folder does not exist",
	} {
		if _, err := memory.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}

	folder := filepath.Join(dir, "folder.jsonl")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := recall(t, openFile(t, folder))
	if err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("a folder: %v", err)
	}
}

func TestRunsThatRememberAtOnceLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.jsonl")
	link := filepath.Join(t.TempDir(), "link.jsonl")
	if err := openFile(t, path).AddRun("first", answered("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i := range 10 {
		f := openFile(t, []string{path, link}[i%2])
		writers.Go(func() {
			if err := f.AddRun(fmt.Sprint(i), answered("x")); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()

	g, err := recall(t, openFile(t, link))
	if err != nil {
		t.Fatal(err)
	}
	got := ask(t, g, "MATCH (r:RunTrace) RETURN count(DISTINCT r.sequence) AS n")
	if got != "[map[n:11]]" {
		t.Errorf("%s runs", got)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".memory-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// FuzzMemory loads hostile files. Each must result in a graph or an error.
func FuzzMemory(f *testing.F) {
	f.Add([]byte(`{"type":"node","id":"a","labels":["X"],"properties":{"x":[1,2.5,{"y":null}]}}`))
	f.Add([]byte(`{"type":"relationship","label":"X","start":{"id":"a"},"end":{"id":"a"}}
		{"type":"node","id":"a"}`))
	path := filepath.Join(f.TempDir(), "memory.jsonl")
	file := openFile(f, path)
	g, err := graph.Open(context.Background(), graph.Config{CacheDir: testcache.Dir(), MaxMemory: 256 << 20})
	if err != nil {
		f.Fatal(err)
	}
	defer g.Close()

	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		before := ask(t, g, "MATCH (n) RETURN count(n) AS n")
		if err := file.Load(t.Context(), g); err == nil {
			if file.AddRun("q", answered("a")) == nil {
				if err := file.Load(t.Context(), g); err != nil {
					t.Errorf("a run made the memory useless: %v", err)
				}
			}
			return
		}
		if after := ask(t, g, "MATCH (n) RETURN count(n) AS n"); after != before {
			t.Errorf("a failed load changed the graph: %s, was %s", after, before)
		}
	})
}
