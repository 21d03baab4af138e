package tablesql

import (
	"fmt"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

func TestFilesNameTablesThatNothingElseNames(t *testing.T) {
	source := func(file string, names ...string) Source { return Source{Names: names, File: file} }
	for _, row := range []struct {
		sources []Source
		want    string
	}{
		{[]Source{source("sales.csv", "context")}, "[context sales]sales.csv"},
		{[]Source{source("2024/sales.v2.csv.GZ", "context")}, "[context sales.v2]2024/sales.v2.csv.GZ"},
		{[]Source{source("plain", "context")}, "[context]plain"},
		{[]Source{source(".csv", "context")}, "[context].csv"},
		{[]Source{source("", "context")}, "[context]"},
		{[]Source{source("sqlite_stat1.csv", "context")}, "[context]"},
		{
			[]Source{source("context_1.csv", "context"), source("b.csv", "context_1")},
			"[context]context_1.csv [context_1 b]b.csv",
		},
		{
			[]Source{source("Sales.csv", "context"), source("b.csv", "sales", "context_1")},
			"[context]Sales.csv [sales context_1 b]b.csv",
		},
		{
			[]Source{source("sales.csv", "context"), source("SALES.jsonl", "context_1")},
			"[context]sales.csv [context_1]SALES.jsonl",
		},
		{
			[]Source{source("sales.csv", "context"), source("sales.csv", "context_1")},
			"[context] [context_1]",
		},
		{[]Source{source("a/x.csv"), source("b/x.csv")}, "[]a/x.csv []b/x.csv"},
	} {
		t.Run(row.want, func(t *testing.T) {
			got := ""
			for i, source := range nameSources(row.sources) {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprint(source.Names) + source.File
			}
			if got != row.want {
				t.Errorf("the names are %s", got)
			}
		})
	}
}

func TestAllShownNamesWorkInQueries(t *testing.T) {
	for _, name := range append([]string{"sales", "two words", "Ümlaut", "1st", `a"b`}, reservedWords...) {
		t.Run(name, func(t *testing.T) {
			text := bigtext.FromBytes("x.csv", []byte("n\n1\n"))
			source := Source{Names: []string{"context"}, File: name + ".csv", Text: text}
			tables := New([]Source{source}, DefaultLimits())
			shown := tables.list[0].listNames()
			rows, err := tables.Query(t.Context(), "select n from "+shown[len(shown)-1], nil)
			if err != nil || string(rows) != `[{"n":1}]` {
				t.Errorf("%s: %s, %v", shown, rows, err)
			}
		})
	}
}

// TestAFilesNameHidesNoTable checks that the first table of a database has the names of its
// context, except a name of another table in the database.
func TestAFilesNameHidesNoTable(t *testing.T) {
	data := makeDatabase(t, `CREATE TABLE customers(n); INSERT INTO customers VALUES('customer');
		CREATE TABLE orders(n); INSERT INTO orders VALUES('order');`)
	text := asContext(t, data)
	tables := New([]Source{{Names: []string{"context"}, File: "orders.db", Text: text}}, DefaultLimits())
	for query, want := range map[string]string{
		"select n from orders":            `[{"n":"order"}]`,
		"select n from context":           `[{"n":"customer"}]`,
		"select n from context.customers": `[{"n":"customer"}]`,
	} {
		t.Run(query, func(t *testing.T) {
			rows, err := tables.Query(t.Context(), query, nil)
			if err != nil || string(rows) != want {
				t.Errorf("%s, %v", rows, err)
			}
		})
	}
}
