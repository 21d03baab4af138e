package graph_test

import (
	"fmt"
	"testing"

	"github.com/rlmhq/rlm/graph"
)

// TestScansTestWholeColumns compares each condition in a scan, which evaluates it for a whole
// column, with the condition on rows passed on by WITH, which are evaluated one by one.
func TestScansTestWholeColumns(t *testing.T) {
	g := open(t, graph.Config{})
	mixed := []any{1, 1.5, "1", true, []any{1}, nil, -3, "b"}
	err := g.Update(t.Context(), func(u *graph.Update) error {
		for i := range 2500 {
			properties := map[string]any{"mixed": mixed[i%len(mixed)]}
			if i%3 > 0 {
				properties["number"] = i%40 - 20
				properties["text"] = fmt.Sprintf("tëxt %d", i%50)
			}
			if i%500 == 0 {
				properties["rare"] = i
			}
			labels := []string{"A", "B"}[:1+i%2]
			node := graph.Node{ID: fmt.Sprint("n", i), Labels: labels, Properties: properties}
			if err := u.AddNode(node); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	var conditions []string
	for _, property := range []string{"number", "text", "mixed", "rare", "none"} {
		for _, value := range []string{"1", "1.0", "-20", "'tëxt 7'", "true", "null", "9223372036854775807"} {
			for _, operator := range []string{" = ", " <> ", " < ", " <= ", " > ", " >= "} {
				conditions = append(conditions, "n."+property+operator+value, value+operator+"n."+property)
			}
		}
		for _, test := range []string{
			"CONTAINS 'ëxt 1'", "STARTS WITH 'të'", "ENDS WITH '9'", "CONTAINS ''", "CONTAINS 1",
			"IS NULL", "IS NOT NULL",
		} {
			conditions = append(conditions, "n."+property+" "+test)
		}
	}
	conditions = append(conditions,
		"n.number < -5 OR n.text CONTAINS '4'", "n.number > 3 AND n.rare IS NULL OR n.mixed = 1",
		"n.number = 1 AND size(n.text) > 6", "n.number > 0 OR n.mixed", "n:B AND n.number >= 10")
	for _, condition := range conditions {
		const columns = " RETURN count(*) AS rows, count(n.number) AS numbers, sum(n.number) AS sum, " +
			"min(n.text) AS least"
		for _, label := range []string{"", ":A", ":A:B"} {
			t.Run(label, func(t *testing.T) {
				match := "MATCH (n" + label + ")"
				scan, err := g.Cypher(t.Context(), match+" WHERE "+condition+columns, nil)
				each, err2 := g.Cypher(t.Context(), match+" WITH n WHERE "+condition+columns, nil)
				if fmt.Sprint(err) != fmt.Sprint(err2) {
					t.Errorf("%s %s: %v, but %v", match, condition, err, err2)
					return
				}
				if err == nil && fmt.Sprint(scan.Rows) != fmt.Sprint(each.Rows) {
					t.Errorf("%s %s: %v, but %v", match, condition, scan.Rows, each.Rows)
				}
			})
		}
	}
}

// TestScansGroupWholeColumns groups by columns of each kind, and without a column.
func TestScansGroupWholeColumns(t *testing.T) {
	g := open(t, graph.Config{})
	err := g.Update(t.Context(), func(u *graph.Update) error {
		for i := range 3000 {
			properties := map[string]any{
				"number": i % 7, "text": fmt.Sprint("t", i%5), "mixed": []any{i % 2, 0.5, "x"}[i%3],
			}
			if i%4 == 0 {
				delete(properties, "number")
				delete(properties, "text")
			}
			node := graph.Node{ID: fmt.Sprint("n", i), Labels: []string{"A"}, Properties: properties}
			if err := u.AddNode(node); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, keys := range []string{
		"", "n.number AS k, ", "n.text AS k, ", "n.mixed AS k, ", "n.none AS k, ", "n.number + 1 AS k, ",
	} {
		t.Run(keys, func(t *testing.T) {
			columns := " RETURN " + keys + "count(*) AS rows, count(DISTINCT n.text) AS texts, sum(n.number) AS sum, " +
				"max(n.number) AS most, collect(n.id)[0] AS first, avg(n.number) AS mean"
			for _, match := range []string{"MATCH (n:A)", "MATCH (n:A) WHERE n.number > 2", "MATCH (n:None)"} {
				scan := rows(t, g, match+columns+" ORDER BY first", nil)
				each := rows(t, g, match+" WITH n"+columns+" ORDER BY first", nil)
				expect(t, scan, each)
			}
		})
	}
}
