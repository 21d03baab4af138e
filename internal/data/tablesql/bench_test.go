package tablesql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// openCities returns a table of seven columns, like that of BENCH=tables.
func openCities(rows int) (all *Tables, size int64) {
	cities := []string{"Berlin", "Köln", "New York", "Paris", "São Paulo"}
	notes := []string{"plain", `"with, comma"`, `"with ""quotes"""`, "a longer note without anything", "\"two\nlines\""}
	var text strings.Builder
	text.WriteString("id,time,user,city,amount,status,note\n")
	for n := range rows {
		fmt.Fprintf(&text, "%d,2026-03-%02dT%02d:00:00,user%d,%s,%d.%02d,ok,%s\n", n, 1+n%28, n%24, n*7919%10_000,
			cities[n%5], n*31%1000, n%100, notes[n*13%5])
	}

	data := text.String()
	return New([]Source{
		{Names: []string{"context"}, Text: bigtext.FromBytes("rows.csv", []byte(data))},
	}, DefaultLimits()), int64(len(data))
}

// BenchmarkGroupBy groups the rows of a table.
func BenchmarkGroupBy(b *testing.B) {
	tables, size := openCities(200_000)
	const query = "select city, count(*) n, sum(amount) total, max(time) last from context " +
		"group by city order by city"
	b.SetBytes(size)
	for b.Loop() {
		rows, err := tables.Query(b.Context(), query, nil)
		if err != nil || strings.Count(string(rows), "{") != 5 {
			b.Fatalf("%s, %v", rows, err)
		}
	}
}

// BenchmarkChecked measures queries that rlm checks.
func BenchmarkChecked(b *testing.B) {
	tables, size := openCities(200_000)
	for name, query := range map[string]string{
		"like":     "select count(*) n from context where note like '%anything%'",
		"prefix":   "select count(*) n from context where city like 'B%'",
		"cast":     "select sum(cast(substr(time, 1, 4) as integer)) n from context",
		"castreal": "select sum(cast(amount as integer)) n from context",
		"divide":   "select sum(id / 10) n from context",
		"divreal":  "select sum(amount / 10) n from context",
		"order":    "select id from context order by amount limit 5",
		"unequal":  "select count(*) n from context where amount <> 5",
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if rows, err := tables.Query(b.Context(), query, nil); err != nil {
					b.Fatalf("%s, %v", rows, err)
				}
			}
		})
	}
}
