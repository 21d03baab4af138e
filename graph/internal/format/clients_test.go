package format

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNetworkx makes networkx read our output and write it again. It needs RLM_GRAPH_PYTHON, a
// Python with the wheels of scripts/graph/requirements.txt.
func TestNetworkx(t *testing.T) {
	python := os.Getenv("RLM_GRAPH_PYTHON")
	if python == "" {
		t.Skip("RLM_GRAPH_PYTHON names no Python with networkx")
	}
	c := everything()
	for i := range 500 {
		id := fmt.Sprintf("n%d", i)
		c.nodes = append(c.nodes, Node{ID: id, Labels: []string{"Made"}, Properties: map[string]any{
			"number": int64(i) << 40, "half": float64(i) / 2, "even": i%2 == 0, "name": id + "\n<&\"",
		}})
		c.edges = append(c.edges, Edge{
			ID: fmt.Sprint(i), Type: "NEXT", From: id, To: fmt.Sprintf("n%d", (i+1)%500),
			Properties: map[string]any{"weight": 0.1 * float64(i)},
		})
	}

	for f, name := range map[Format]string{JSON: "a.json", GraphML: "a.graphml"} {
		t.Run(string(f), func(t *testing.T) {
			dir := t.TempDir()
			if f == GraphML {
				c = simplify(c)
			}
			var written bytes.Buffer
			if _, err := Write(f, &written, c.source()); err != nil {
				t.Fatal(err)
			}
			in, again := filepath.Join(dir, name), filepath.Join(dir, "again-"+name)
			if err := os.WriteFile(in, written.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}

			cmd := exec.CommandContext(t.Context(), python, "testdata/clients/networkx_again.py", in, again)
			cmd.Stderr = os.Stderr
			said, err := cmd.Output()
			want := fmt.Sprintf("%d %d True True\n", len(c.nodes), len(c.edges))
			if err != nil || string(said) != want {
				t.Fatalf("networkx has %q, want %q, %v", said, want, err)
			}
			text, err := os.ReadFile(again)
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(t, f, string(text))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := lines(got), lines(c); !slices.Equal(got, want) {
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Fatalf("got\n%s\nwant\n%s", got[i], want[i])
					}
				}
				t.Fatalf("%d records, want %d", len(got), len(want))
			}
		})
	}
}

// simplify removes the values that networkx does not keep: lists and maps, which it does not read
// from GraphML; carriage returns, which it writes as different text; and a second type of an edge,
// because it drops the attribute label.
func simplify(c *collected) *collected {
	for _, n := range c.nodes {
		for name, value := range n.Properties {
			if text, ok := value.(string); ok {
				n.Properties[name] = strings.ReplaceAll(text, "\r", "")
			} else if kindOf(value) == kindJSON {
				delete(n.Properties, name)
			}
		}
	}
	for _, e := range c.edges {
		delete(e.Properties, "type")
	}

	return c
}

// lines returns the records of a graph in order, without the identifiers of edges.
func lines(c *collected) []string {
	for i := range c.edges {
		c.edges[i].ID = ""
	}
	c.notes = nil
	all := strings.Split(c.String(), "\n")
	slices.Sort(all)
	return all
}
