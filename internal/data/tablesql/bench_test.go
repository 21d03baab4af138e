package tablesql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// BenchmarkGroupBy groups the rows of a table of seven columns, like BENCH=tables.
func BenchmarkGroupBy(b *testing.B) {
	cities := []string{"Berlin", "Köln", "New York", "Paris", "São Paulo"}
	notes := []string{"plain", `"with, comma"`, `"with ""quotes"""`, "a longer note without anything", "\"two\nlines\""}
	var text strings.Builder
	text.WriteString("id,time,user,city,amount,status,note\n")
	for n := range 200_000 {
		fmt.Fprintf(&text, "%d,2026-03-%02dT%02d:00:00,user%d,%s,%d.%02d,ok,%s\n", n, 1+n%28, n%24, n*7919%10_000,
			cities[n%5], n*31%1000, n%100, notes[n*13%5])
	}
	data := text.String()
	tables := New([]Source{{[]string{"context"}, bigtext.FromBytes("rows.csv", []byte(data))}}, DefaultLimits())

	const query = "select city, count(*) n, sum(amount) total, max(time) last from context " +
		"group by city order by city"
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		rows, err := tables.Query(b.Context(), query, nil)
		if err != nil || strings.Count(string(rows), "{") != len(cities) {
			b.Fatalf("%s, %v", rows, err)
		}
	}
}
