package graph

import "context"

// View queries the graph as a memory about a text. It returns the rows of each view by name, at
// most 5 per view:
//
//   - semantic: {node, score}, nodes that share words with the text
//   - temporal: {node}, the newest by their property sequence, or timestamp, created_at, time or
//     date
//   - causal: {trace, cause}, edges CAUSED_BY of nodes of type ReasoningTrace
//   - entity: {node}, nodes whose id or type contains the text
//   - epistemic: {belief, supporting, contradicting}, nodes of type Belief
//   - place: {node, place}, edges LOCATED_IN or LOCATED_AT
//
// If views is empty, View uses the first four. In causal, epistemic and place, rows that share
// words with the text come first.
func (g *Graph) View(
	ctx context.Context, text string, views []string,
) (map[string][]map[string]any, error) {
	if len(views) == 0 {
		views = []string{"semantic", "temporal", "causal", "entity"}
	}
	var e encoder
	e.text(text)
	e.texts(views)
	if e.err != nil {
		return nil, e.err
	}
	answer, err := g.read(ctx, readyCypher, job{operation: opView, request: e.data})
	if err != nil {
		return nil, err
	}

	d := newDecoder(answer, g.config)
	all := make(map[string][]map[string]any, len(views))
	for _, name := range views {
		all[name], _ = d.rows(func() map[string]any {
			row, _ := d.value(0).(map[string]any)
			return row
		})
	}
	return all, d.err
}
