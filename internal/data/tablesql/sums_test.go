package tablesql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// TestSumsOfNumbersAreThoseOfSQLite compares the sums with SQLite's own, which they replace.
func TestSumsOfNumbersAreThoseOfSQLite(t *testing.T) {
	own, theirs := openBoth(t)
	random := rand.New(rand.NewPCG(1, 2))
	values := []string{
		"NULL", "1", "-7", "0.1", "'12'", "'007'", "' 1.5 '", "'1e3'", "2.5", "0", // not in windows, where
		// SQLite itself loses digits of the following values.
		"9223372036854775807", "-9223372036854775808", "4503599627370497", "1e300", "-1e300", "1e999",
	}
	const inWindows = 10
	for n := range 80 {
		values, calls := values, []string{"quote(%s(v))", "quote(%s(distinct v))", "quote(%s(v) filter (where i > 2))"}
		if n%2 == 0 {
			values = values[:inWindows]
			calls = []string{"group_concat(x) from (select quote(%s(v) over (order by i rows 2 preceding)) x"}
		}
		var rows []string
		for i := range random.IntN(8) {
			rows = append(rows, fmt.Sprintf("(%d, %s)", i, values[random.IntN(len(values))]))
		}
		from := "(select 0 i, 0 v where 0)"
		if rows != nil {
			from = "(select column1 i, column2 v from (values " + strings.Join(rows, ", ") + "))"
		}
		for _, name := range []string{"sum", "total", "avg"} {
			for _, call := range calls {
				end := strings.Repeat(")", strings.Count(call, "from (select"))
				query := "select " + fmt.Sprintf(call, name) + " from " + from + end
				t.Run(query, func(t *testing.T) {
					if got, want := ask(t, own.Conn, query), ask(t, theirs, query); got != want {
						t.Errorf("%s: %s, want %s", query, got, want)
					}
				})
			}
		}
	}
}

// ask returns the only value of a query, or its error.
func ask(t *testing.T, db *sqlite3.Conn, query string) string {
	t.Helper()
	stmt, _, err := db.Prepare(query)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	if !stmt.Step() {
		return strings.TrimPrefix(stmt.Err().Error(), "sqlite3: SQL logic error: ")
	}
	return stmt.ColumnText(0)
}

// TestSumsRefuseTexts checks that sums refuse text that is not a number, but ignore empty strings.
func TestSumsRefuseTexts(t *testing.T) {
	tables := open(t, DefaultLimits(), map[string]string{
		"orders.csv":   "id;amount;rate;n\n1;1.234,50;1,5;1\n2;99,90;2,5;\n3;;;n/a\n",
		"events.jsonl": "{\"v\": \"$5.00\"}\n{\"v\": \"$7.50\"}\n",
	})
	for query, says := range map[string]string{
		"select sum(amount) from orders":                             `sum of the text "1.234,50": it is not a number`,
		"select total(rate) from orders":                             `total of the text "1,5"`,
		"select avg(n) from orders":                                  `avg of the text "n/a"`,
		"select sum(n) over (order by id) from orders":               `nullif(..., 'n/a')`,
		"select sum(v) from events":                                  `"$5.00"`,
		"select sum(x'00')":                                          "sum of bytes",
		"select avg(amount || printf('%.*c', 100, 'x')) from orders": "filter such texts",
	} {
		t.Run(query, func(t *testing.T) {
			if rows, err := tables.Query(t.Context(), query, nil); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %s, %v; want %q", query, rows, err, says)
			}
		})
	}
	for query, want := range map[string]string{
		"select avg(nullif(n, 'n/a')) a, sum(id) s from orders":                            `[{"a":1.0,"s":6}]`,
		"select sum(cast(replace(rate, ',', '.') as real)) s from orders":                  `[{"s":4.0}]`,
		"select sum(replace(rate, ',', '.')) s, avg(n) is null a from orders where id = 1": `[{"s":1.5,"a":0}]`,
	} {
		t.Run(query, func(t *testing.T) {
			if rows, err := tables.Query(t.Context(), query, nil); err != nil || string(rows) != want {
				t.Errorf("%s: %s, %v; want %s", query, rows, err, want)
			}
		})
	}
}

// TestComparisonsOfMixedColumnsAreNoted also checks that a query that handles the text itself has
// no note.
func TestComparisonsOfMixedColumnsAreNoted(t *testing.T) {
	late := "id,v\n" + strings.Repeat("1,2\n", sampleRows) + "2,unknown\n"
	tables := open(t, DefaultLimits(), map[string]string{
		"orders.csv":   "id,n,zip,name,price\n1,10,01234,a,$5\n2,9,12345,b,$10\n3,n/a,99999,c7,\n4,4,00001,d,$7\n",
		"events.jsonl": "{\"w\": 1}\n{\"w\": \"-\"}\n{\"w\": 3}\n",
		"late.csv":     late,
	})
	for query, want := range map[string]string{
		"select n from orders order by n desc":             `n of orders "n/a"`,
		"select count(n) from orders o":                    `n of orders "n/a"`,
		"select max(coalesce(n, 0)) from orders":           `n of orders "n/a"`,
		"select id from orders order by price desc":        `price of orders "$5"`,
		"select min(coalesce(w, 0)) from events":           `w of events "-"`,
		"select max(coalesce(v, 0)) from late":             `v of late "unknown"`,
		"select * from orders":                             "",
		"select count(*) from orders":                      "",
		"select n, zip from orders where n = '2024-01-01'": "",
		"select zip from orders order by zip, name":        "",
		"select max(nullif(n, 'n/a')) from orders":         "",
		"select max(n) from orders where n <> 'n/a'":       "",
		"select max(id), min(name) from orders":            "",
	} {
		t.Run(query, func(t *testing.T) {
			var noted []string
			ctx := WithNotes(t.Context(), func(_ string, args ...any) {
				noted = append(noted, fmt.Sprintf("%s %q", args...))
			})
			for range 2 {
				if rows, err := tables.Query(ctx, query, nil); err != nil {
					t.Fatalf("%s: %s, %v", query, rows, err)
				}
			}
			if got := strings.Join(noted, "; "); got != want {
				t.Errorf("%s: noted %s; want %s", query, got, want)
			}
		})
	}
}

func TestANameThatSeveralFilesHaveIsExplained(t *testing.T) {
	text := func() *bigtext.Text { return bigtext.FromBytes("t.csv", []byte("n\n1\n")) }
	tables := New([]Source{
		{Names: []string{"context"}, File: "t.csv", Text: text()},
		{Names: []string{"context_1"}, File: "t.jsonl", Text: text()},
	}, DefaultLimits())
	_, err := tables.Query(t.Context(), "select * from T", nil)
	const says = "no such table: T; several files have that name (t.csv, t.jsonl): give one a name of its own, with " +
		"--context name=PATH; the tables are: "
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v; want %q", err, says)
	}
}

// TestMistakesAboutColumnsListThem checks that the error for an unknown column lists the columns
// and the nearest name.
func TestMistakesAboutColumnsListThem(t *testing.T) {
	tables := usual(t)
	for query, says := range map[string]string{
		"select amuont from orders":  "no such column: amuont; did you mean amount?; the columns are: [id INTEGER",
		"select o.dey from orders o": "no such column: o.dey; did you mean day?",
		"select unknown from orders": "no such column: unknown; the columns are: [id INTEGER",
		"describe orders":            "only SELECT is possible; the tables are:\n- table ",
		"show tables":                "only SELECT is possible; the tables are:\n- table ",
		"pragma table_info(orders)":  `"amount REAL"`,
	} {
		t.Run(query, func(t *testing.T) {
			if rows, err := tables.Query(t.Context(), query, nil); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %s, %v; want %q", query, rows, err, says)
			}
		})
	}
}
