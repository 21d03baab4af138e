package graph_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/graph"
)

// addMany adds more nodes than a batch for the engine holds.
func addMany(u *graph.Update) error {
	text := strings.Repeat("x", 1000)
	for i := range 2000 {
		err := u.AddNode(graph.Node{ID: strconv.Itoa(i), Properties: map[string]any{"text": text}})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestAnUpdateFailsWhileTheEngineWorks checks updates that fail in the change itself, while the
// engine still works on nodes, and in the engine, while the change adds more nodes.
func TestAnUpdateFailsWhileTheEngineWorks(t *testing.T) {
	g := open(t, graph.Config{})
	ownError := errors.New("the change failed")
	for name, fail := range map[string]func(*graph.Update) error{
		"the change": func(*graph.Update) error { return ownError },
		"the engine": func(u *graph.Update) error {
			return errors.Join(u.AddEdge(graph.Edge{From: "1", To: "none", Type: "T"}), addMany(u))
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := g.Update(t.Context(), func(u *graph.Update) error {
				return errors.Join(addMany(u), fail(u))
			})
			if err == nil || !errors.Is(err, ownError) && !strings.Contains(err.Error(), `"none", which is missing`) {
				t.Errorf("%s: %v", name, err)
			}
			expect(t, rows(t, g, "MATCH (n) RETURN count(*) AS n", nil), "[n] [map[n:0]]")
		})
	}

	if err := g.Update(t.Context(), addMany); err != nil {
		t.Fatal(err)
	}
	expect(t, rows(t, g, "MATCH (n) RETURN count(*) AS n", nil), "[n] [map[n:2000]]")
}

// TestAnEndedUpdateWritesNothing checks that an update cannot be used after it has ended.
func TestAnEndedUpdateWritesNothing(t *testing.T) {
	g := open(t, graph.Config{})
	var kept *graph.Update
	err := g.Update(t.Context(), func(u *graph.Update) error {
		kept = u
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	_, cypher := kept.Cypher("CREATE (:A)", nil)
	for name, err := range map[string]error{
		"AddNode": kept.AddNode(graph.Node{ID: "a"}),
		"AddEdge": kept.AddEdge(graph.Edge{From: "a", To: "a", Type: "T"}),
		"RDF":     kept.RDF(strings.NewReader(""), "turtle", ""),
		"Cypher":  cypher,
	} {
		if err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadersSeeTheOldStateDuringAnUpdate checks that a read in the middle of an update returns the
// old state.
func TestReadersSeeTheOldStateDuringAnUpdate(t *testing.T) {
	const count = "MATCH (n) RETURN count(*) AS n"
	g := open(t, graph.Config{})
	expect(t, rows(t, g, count, nil), "[n] [map[n:0]]")
	err := g.Update(t.Context(), func(u *graph.Update) error {
		if _, err := u.Cypher("CREATE (:A)", nil); err != nil {
			return err
		}
		expect(t, rows(t, g, count, nil), "[n] [map[n:0]]")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, rows(t, g, count, nil), "[n] [map[n:1]]")
}
