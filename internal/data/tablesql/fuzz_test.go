package tablesql

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzQuery runs a query on a table in any text. The query must return rows in JSON or an error.
func FuzzQuery(f *testing.F) {
	f.Add("select * from orders where id = ?", orders, `[1]`)
	f.Add("select a.id, sum(b.amount) over () from orders a join events b using (id)", "id;amount\n1;2\n", `{}`)
	f.Add("with recursive c(x) as (select 1 union all select x+1 from c) "+
		"select x, trim(x, 'é'), instr(x, 1) from c", "", `{"a": null}`)
	f.Add("select value ->> '$.a', replace(_line, 'a', 'b') from events, json_each(tags)", "\ufeff\"a\nb\",A\n\xff", ``)
	f.Fuzz(func(t *testing.T, query, text, params string) {
		limits := Limits{Time: 200 * time.Millisecond, Memory: 16 << 20, Rows: 100, Bytes: 1 << 16}
		tables := open(t, limits, map[string]string{"orders.csv": text, "events.jsonl": events})
		rows, err := tables.Query(t.Context(), query, json.RawMessage(params))
		if (err == nil) != json.Valid(rows) {
			t.Fatalf("%q over %q: %q %v", query, text, rows, err)
		}
		if tables.Describe() == "" {
			t.Fatalf("no description with %q", text)
		}
	})
}
