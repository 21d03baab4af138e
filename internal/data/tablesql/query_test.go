package tablesql

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

const orders = "id,day,amount,code,note\n1,2024-03-02,1.5,007,\"two\nlines\"\n2,2024-03-03,,012,plain\n\n" +
	"3,2024-03-02,4.25,100,\"a \"\"b\"\"\"\n"

const events = `{"id": 1, "tags": ["a", "b"], "ok": true, "x": {"y": "é"}}
{"id": 2, "x": null, "n": 12345678901234567890}

{"id": 3, "ok": false, "s": "q\u0041"}
`

// open returns the tables of the given texts, by name.
func open(t *testing.T, limits Limits, texts map[string]string) *Tables {
	t.Helper()
	var sources []Source
	for name, text := range texts {
		b := bigtext.FromBytes(name, []byte(text))
		base, _, _ := strings.Cut(name, ".")
		sources = append(sources, Source{Names: []string{base}, Text: b})
	}
	return New(sources, limits)
}

func usual(t *testing.T) *Tables {
	t.Helper()
	return open(t, DefaultLimits(), map[string]string{
		"orders.csv": orders, "events.jsonl": events, "prose.txt": "no table", "empty.csv": "\n",
	})
}

func TestQueries(t *testing.T) {
	tables := usual(t)
	for _, c := range [][2]string{
		{"select * from orders where id = 1", `[{"id":1,"day":"2024-03-02","amount":1.5,` +
			`"code":"007","note":"two\u000alines"}]`},
		{
			"select day, count(*) n, sum(amount) s from orders group by day order by day",
			`[{"day":"2024-03-02",` +
				`"n":2,"s":5.75},{"day":"2024-03-03","n":1,"s":null}]`,
		},
		{"select note from orders where note like '%b%'", `[{"note":"a \"b\""}]`},
		{
			"select a.id, b.id from orders a join orders b using (day)",
			`[{"id":1,"id_2":1},{"id":1,"id_2":3},{"id":2,"id_2":2},{"id":3,"id_2":1},{"id":3,"id_2":3}]`,
		},
		{
			"select typeof(id) a, typeof(amount) b, typeof(code) c from orders limit 2",
			`[{"a":"integer","b":"real",` +
				`"c":"text"},{"a":"integer","b":"null","c":"text"}]`,
		},
		{
			"select id, tags, ok from events where ok is not null",
			`[{"id":1,"tags":"[\"a\", \"b\"]","ok":1},{"id":3,"tags":null,"ok":0}]`,
		},
		{
			"select x ->> '$.y' y, s, n from events",
			`[{"y":"é","s":null,"n":null},{"y":null,"s":null,"n":12345678901234567890},{"y":null,"s":"qA","n":null}]`,
		},
		{"select count(*) n, max(_line ->> '$.id') m from events", `[{"n":3,"m":3}]`},
		{"select value from events, json_each(tags)", `[{"value":"a"},{"value":"b"}]`},
		{
			"with recursive c(x) as (select 1 union all select x+1 from c where x<3) select sum(x) s from c",
			`[{"s":6}]`,
		},
		{"select rank() over (order by amount desc) r from orders", `[{"r":1},{"r":2},{"r":3}]`},
		{
			"select 1e999 a, -1e999 b, 3.0 c, 1e300 d, x'' is null e",
			`[{"a":1e999,"b":-1e999,"c":3.0,"d":1e+300,"e":0}]`,
		},
		{
			"select instr('aébé','é') a, replace('aXbX','X','yy') b, trim('xxaxx','x') c, ltrim('éa','é') d, " +
				"rtrim('a..','.') e",
			`[{"a":2,"b":"ayybyy","c":"a","d":"a","e":"a"}]`,
		},
		{"select id from orders where 1=0", `[]`},
	} {
		t.Run(fmt.Sprintf("%.60s", c[0]), func(t *testing.T) {
			query, want := c[0], c[1]
			rows, err := tables.Query(t.Context(), query, nil)
			if err != nil || string(rows) != want || !json.Valid(rows) {
				t.Errorf("%s:\n got %s %v\nwant %s", query, rows, err, want)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	tables := usual(t)
	for _, c := range []struct{ query, params, want string }{
		{
			"select ? a, ? b, ? c, ? d", `[9007199254740993, 1.5, "é", null]`,
			`[{"a":9007199254740993,"b":1.5,"c":"é","d":null}]`,
		},
		{"select :a a, @b b, :a + 1 c", `{"a": 1, "b": true}`, `[{"a":1,"b":1,"c":2}]`},
	} {
		t.Run(c.query, func(t *testing.T) {
			rows, err := tables.Query(t.Context(), c.query, json.RawMessage(c.params))
			if err != nil || string(rows) != c.want {
				t.Errorf("%s: got %s %v", c.query, rows, err)
			}
		})
	}
	for query, params := range map[string]string{
		"select ?": `[]`, "select ?, 1": `{"a":1}`, "select :a": `{"b":1}`, "select ?1": `[[1]]`, "select ?2": `"x"`,
		"select ?3": `[1e999]`,
	} {
		t.Run(query, func(t *testing.T) {
			if rows, err := tables.Query(t.Context(), query, json.RawMessage(params)); err == nil {
				t.Errorf("%s with %s gave %s", query, params, rows)
			}
		})
	}
}

// TestAttacks runs queries that must end with an error, in bounded time and memory.
func TestAttacks(t *testing.T) {
	patient := Limits{Time: 5 * time.Minute, Memory: 64 << 20, Rows: 1000, Bytes: 1 << 20}
	hasty := patient
	hasty.Time = 300 * time.Millisecond
	var big strings.Builder
	big.WriteString("id,name\n")
	for i := range 20_000 {
		fmt.Fprintf(&big, "%d,name %d\n", i, i)
	}
	files := map[string]string{"orders.csv": orders, "big.csv": big.String()}
	tables, soon := open(t, patient, files), open(t, hasty, files)
	const endless = "with recursive c(x) as (select 1 union all select x+1 from c) "
	for _, c := range [][2]string{
		{"attach '/tmp/x' as y", "only SELECT"},
		{"select load_extension('x')", "no such function"},
		{"pragma user_version = 3", "only SELECT"},
		{"pragma temp_store_directory = '/'", "only SELECT"},
		{"select * from pragma_database_list", "only SELECT"},
		{"create table x(y)", "only SELECT"},
		{"create temp table x as select 1", "only SELECT"},
		{"insert into orders values (1,2,3,4,5)", "only SELECT"},
		{"delete from orders", "only SELECT"},
		{"drop table orders", "only SELECT"},
		{"vacuum into '/tmp/x.db'", "sql:"},
		{"begin", "only SELECT"},
		{"select 1; select 2", "one query at a time"},
		{"", "empty"},
		{"-- nothing", "empty"},
		{"select", "incomplete input"},
		{"select * from missing", "the tables are: "},
		{"select missing from orders", "no such column"},
		{"select randomblob(1000000000)", "too big"},
		{"select zeroblob(2000000000)", "too big"},
		{"select printf('%1000000000d', 1)", "too big"},
		{"select hex(zeroblob(8000000))", "too big"},
		{"select replace(hex(zeroblob(1000000)), '0', '0000000000')", "too big"},
		{"select zeroblob(10)", "hex("},
		{endless + "select count(*) from c", "takes more than 300ms"},
		{endless + "select x from c", "more than 1000 rows"},
		{endless + "select x from c order by x", ""},
		{endless + "select group_concat(x, 'xxxxxxxxxx') from c", ""},
		{endless + "select hex(randomblob(1000)), x from c", "the rows have more than"},
		{endless + "select distinct hex(randomblob(10000)) from c order by 1", "sql: the query "},
		{"select count(*) from big a, big b, big c", "takes more than 300ms"},
		{"select count(*) from big a join big b on a.name < b.name", "takes more than 300ms"},
		{"select a.id from big a, big b order by a.name || b.name", ""},
		{"select " + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000), ""},
		{"select 1" + strings.Repeat("+1", 3000), "too large"},
		{"select " + strings.Repeat("1,", 3000) + "1", "too many columns"},
		{"select 1" + strings.Repeat(" union all select 1", 3000), "too many"},
		{
			"select * from " + strings.Repeat("(select * from ", 500) + "orders" + strings.Repeat(")", 500),
			"",
		},
		{"select " + strings.Repeat("x", 200_000), "too long"},
		{"select json_group_array(id) from big a join big b", ""},
		{
			"select like('%" + strings.Repeat("a%", 90) + "b', replace(hex(zeroblob(3000000)),'0','a'))",
			"",
		},
	} {
		query, says := c[0], c[1]
		t.Run(fmt.Sprintf("%.60s", query), func(t *testing.T) {
			asked := tables
			if says == "" || strings.Contains(says, "takes more than 300ms") {
				asked = soon // the time limit may end it
			}

			rows, err := asked.Query(t.Context(), query, nil)
			if err == nil && says != "" || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%.80s: want an error that says %q, got %.100s %v", query, says, rows, err)
			}
			t.Logf("%.100v", err)
		})
	}

	if rows, err := tables.Query(t.Context(), "select count(*) n from big", nil); err != nil {
		t.Errorf("after the attacks: %s %v", rows, err)
	}
	runtime.GC()
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmRSS") {
				t.Log(line)
			}
		}
	}
}

// TestLinesOfManyKeys checks that a query can read keys beyond the last column of a table from
// _line.
func TestLinesOfManyKeys(t *testing.T) {
	keys := make([]string, maxColumns+2)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	tables := open(t, DefaultLimits(), map[string]string{"wide.jsonl": "{" + strings.Join(keys, ",") + "}\n"})

	const query = "select k999 a, _line ->> 'k1001' b from wide"
	if rows, err := tables.Query(t.Context(), query, nil); err != nil || string(rows) != `[{"a":999,"b":1001}]` {
		t.Errorf("%s, %v", rows, err)
	}
	if rows, err := tables.Query(t.Context(), "select k1001 from wide", nil); err == nil {
		t.Errorf("a key without a column: %s", rows)
	}
}

// TestNamesThatAreTooLongForSQLite checks that such names cause an error, not a panic.
func TestNamesThatAreTooLongForSQLite(t *testing.T) {
	name := strings.Repeat("k", 2_000_000)
	tables := open(t, DefaultLimits(), map[string]string{"wide.jsonl": `{"` + name + `":1,"short":2}` + "\n"})
	if rows, err := tables.Query(t.Context(), "select short from wide", nil); string(rows) != `[{"short":2}]` {
		t.Errorf("%s, %v", rows, err)
	}
	if rows, err := tables.Query(t.Context(), "select * from wide", nil); err == nil ||
		!strings.Contains(err.Error(), "SQLite has failed") {
		t.Errorf("%.100s, %v", rows, err)
	}

	text := bigtext.FromBytes("long.db", makeDatabase(t, `create table t("`+name+`")`))
	if list, err := ListDatabase(t.Context(), text); !errors.Is(err, ErrDatabase) {
		t.Errorf("%d tables, %v", len(list), err)
	}
}

func TestClashingNamesAreAmbiguous(t *testing.T) {
	text := bigtext.FromBytes("a.csv", []byte("n\n1\n"))
	other := bigtext.FromBytes("b.csv", []byte("n\n2\n"))
	tables := New([]Source{
		{Names: []string{"A", "context", "json_each"}, Text: text}, {Names: []string{"a", "context_1"}, Text: other},
	}, DefaultLimits())

	rows, err := tables.Query(t.Context(), "select c.n, d.n, e.n from context c, context_1 d, json_each e", nil)
	if err != nil || string(rows) != `[{"n":1,"n_2":2,"n_3":1}]` {
		t.Errorf("%s %v", rows, err)
	}
	if rows, err = tables.Query(t.Context(), "select * from a", nil); err == nil {
		t.Errorf("both tables are called a, and it has %s", rows)
	}
}
