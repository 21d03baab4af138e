package tablesql

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

const shop = `
	CREATE TABLE orders(id INTEGER PRIMARY KEY, name TEXT, price REAL, data BLOB, "any one");
	INSERT INTO orders VALUES(1, 'Köln', 2.5, x'00ff', 'x'), (2, NULL, 1e999, NULL, 7);
	CREATE TABLE people(name);
	INSERT INTO people VALUES('Ada');
	CREATE VIEW cheap AS SELECT id FROM orders WHERE price < 5;
	CREATE VIEW broken AS SELECT * FROM missing;
`

// makeDatabase returns a database created by a script.
func makeDatabase(tb testing.TB, script string) []byte {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "made.db")
	db, err := sqlite3.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(db.Exec(script), db.Close()); err != nil {
		tb.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// asContext returns a database as opened by package inputs.
func asContext(tb testing.TB, data []byte) *bigtext.Text {
	tb.Helper()
	text := bigtext.FromBytes("made.db", data)
	text.MarkBinary(KindDatabase)
	list, err := ListDatabase(tb.Context(), text)
	if err != nil {
		tb.Fatal(err)
	}
	text.MarkTables(list)
	return text
}

func TestDatabasesAreQueried(t *testing.T) {
	text := asContext(t, makeDatabase(t, shop))
	tables := New([]Source{
		{Names: []string{"shop", "context", "context_0"}, Text: text},
		{Names: []string{"context_1"}, Text: bigtext.FromBytes("a.csv", []byte("n\n1\n"))},
	}, DefaultLimits())

	want := "- table shop or context or context_0 or shop.orders: columns " +
		`["id INTEGER" "name TEXT" "price REAL" "data BLOB" "any one"]` +
		"\n- table shop.people: columns [\"name\"]\n- table shop.cheap: columns [\"id INTEGER\"]\n" +
		`- table context_1: columns ["n INTEGER"]`
	if got := tables.Describe(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, c := range [][2]string{
		{"select id, name from context", `[{"id":1,"name":"Köln"},{"id":2,"name":null}]`},
		{"select name from shop.people", `[{"name":"Ada"}]`},
		{"select name from people", `[{"name":"Ada"}]`},
		{"select * from cheap", `[{"id":1}]`},
		{"select hex(data) h, \"any one\" a from context_0 where id = 1", `[{"h":"00FF","a":"x"}]`},
		{"select count(*) n from orders, context_1", `[{"n":2}]`},
		{"select count(*) > 1 n from shop.sqlite_schema", `[{"n":1}]`},
	} {
		t.Run(fmt.Sprintf("%.60s", c[0]), func(t *testing.T) {
			rows, err := tables.Query(t.Context(), c[0], nil)
			if err != nil || string(rows) != c[1] {
				t.Errorf("%s: %s, %v; want %s", c[0], rows, err, c[1])
			}
		})
	}
	for query, says := range map[string]string{
		"select * from broken":                        "no such table: shop.missing",
		"select * from no_such":                       "the tables are: shop, context, context_0, shop.orders",
		"insert into shop.people values(1)":           "only SELECT",
		"attach 'file:rlm-1?vfs=reader' as x":         "only SELECT",
		"select * from pragma_database_list":          "only SELECT",
		"select load_extension('x') from shop.people": "",
	} {
		t.Run(query, func(t *testing.T) {
			if rows, err := tables.Query(t.Context(), query, nil); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %s, %v; want %q", query, rows, err, says)
			}
		})
	}
}

func TestRowsOfADatabase(t *testing.T) {
	text := asContext(t, makeDatabase(t, shop))
	var lines bytes.Buffer
	if err := WriteRows(t.Context(), text, "orders", &lines); err != nil {
		t.Fatal(err)
	}
	const want = `{"id":1,"name":"Köln","price":2.5,"data":"00ff","any one":"x"}
{"id":2,"name":null,"price":1e999,"data":null,"any one":7}
`
	if lines.String() != want {
		t.Errorf("%s\nwant\n%s", &lines, want)
	}
}

// TestASheetIsATable queries tables of JSON that are read only when a query needs them.
func TestASheetIsATable(t *testing.T) {
	read := map[string]int{}
	table := func(name, rows string, columns ...bigtext.Column) bigtext.Table {
		readAll := func(context.Context) (*bigtext.Text, error) {
			read[name]++
			return bigtext.FromBytes(name, []byte(rows)), nil
		}
		return bigtext.Table{Name: name, Rows: -1, Columns: columns, Read: readAll}
	}
	text := bigtext.FromBytes("book.xlsx", []byte("a text"))
	text.MarkTables([]bigtext.Table{
		table("Sales", "{\"a \\\"b\\\"\\n\": 1, \"n\": 2}\n{\"n\": 3}\n",
			bigtext.Column{Name: "a \"b\"\n"}, bigtext.Column{Name: "n", Type: "number"}),
		table("two words", "{\"N\":1,\"n\":\"x\"}\n", bigtext.Column{Name: "N"}, bigtext.Column{Name: "n"}),
		table("sales", "", bigtext.Column{Name: "n"}),
		table("empty", ""),
	})
	tables := New([]Source{{Names: []string{"context"}, Text: text}}, DefaultLimits())

	const want = "- table context or context.Sales: columns [\"a \\\"b\\\"\" \"n number\"]\n" +
		"- table context.\"two words\": columns [\"N\" \"n_2\"]\n- table context.sales_2: columns [\"n\"]\n" +
		"- table context.empty: columns []"
	if got := tables.Describe(); got != want || len(read) > 0 {
		t.Errorf("%s\nwant\n%s\nread: %v", got, want, read)
	}
	for _, c := range [][2]string{
		{"select \"a \"\"b\"\"\n\" a, n from context", `[{"a":1,"n":2},{"a":null,"n":3}]`},
		{"select sum(n) s from context.Sales", `[{"s":5}]`},
		{"select N, n_2, _line from \"two words\"", `[{"N":1,"n_2":"x","_line":"{\"N\":1,\"n\":\"x\"}"}]`},
		{"select count(*) n from sales_2", `[{"n":0}]`},
		{"select count(*) n from context.empty", `[{"n":0}]`},
	} {
		rows, err := tables.Query(t.Context(), c[0], nil)
		if err != nil || string(rows) != c[1] {
			t.Errorf("%s: %s, %v; want %s", c[0], rows, err, c[1])
		}
	}
	if read["Sales"] != 1 || read["two words"] != 1 {
		t.Errorf("read: %v", read)
	}
}

// TestHostileDatabases opens databases with random bytes, and one whose view never ends.
func TestHostileDatabases(t *testing.T) {
	skip.UnderRace(t)
	good := makeDatabase(t, shop)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		bad := bytes.Clone(good)
		for range 1 + r.IntN(20) {
			bad[r.IntN(len(bad))] = byte(r.Uint32())
		}
		if n := r.IntN(3); n == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		useDatabase(t, bad)
	}

	endless := asContext(t, makeDatabase(t,
		"CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c;"))
	limits := DefaultLimits()
	limits.Time = 200e6
	tables := New([]Source{{Names: []string{"context"}, Text: endless}}, limits)
	if _, err := tables.Query(t.Context(), "select count(*) from v", nil); err == nil ||
		!strings.Contains(err.Error(), "takes more than") {
		t.Errorf("endless: %v", err)
	}
}

// useDatabase uses a hostile file as a session would.
func useDatabase(t *testing.T, data []byte) {
	t.Helper()
	text := bigtext.FromBytes("bad.db", data)
	text.MarkBinary(KindDatabase)
	list, err := ListDatabase(t.Context(), text)
	if err != nil {
		if !errors.Is(err, ErrDatabase) {
			t.Fatalf("%v", err)
		}
		return
	}
	for _, table := range list {
		var lines bytes.Buffer
		if err := WriteRows(t.Context(), text, table.Name, &lines); err != nil && !errors.Is(err, ErrDatabase) {
			t.Fatalf("%v", err)
		}
	}
	text.MarkTables(list)
	if tables := New([]Source{{Names: []string{"context"}, Text: text}}, DefaultLimits()); tables != nil {
		_, _ = tables.Query(t.Context(), "select * from context", nil) // an error is fine
	}
}

func FuzzDatabase(f *testing.F) {
	good := makeDatabase(f, shop)
	f.Add(good, uint16(100), byte(13))
	f.Add(good[:4096], uint16(18), byte(2))
	f.Add(binary.BigEndian.AppendUint16(bytes.Clone(good[:100]), 65535), uint16(16), byte(255))
	f.Fuzz(func(t *testing.T, data []byte, at uint16, value byte) {
		if len(data) > 1<<16 {
			return
		}
		if int(at) < len(data) {
			data = bytes.Clone(data)
			data[at] = value
		}
		useDatabase(t, data)
	})
}
