package tablesql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// askTold returns the rows of a query, and its notes.
func askTold(t *testing.T, all *Tables, query string) (rows, told string, err error) {
	t.Helper()
	ctx := WithNotes(t.Context(), func(format string, args ...any) { told += fmt.Sprintf(format, args...) + "\n" })
	out, err := all.Query(ctx, query, nil)
	return string(out), told, err
}

func openSilent(t *testing.T) *Tables {
	t.Helper()
	return open(t, DefaultLimits(), map[string]string{
		"o.csv": "a (EUR),a/b\n7,8\n",
		"t.csv": "n,r,s,w,e\n7,2.5,007,Ann,x\n8,10,12,bob,y\n,3,,Bob,\n",
		"j.jsonl": "{\"a\":7,\"b\":2,\"s\":\"2.7\",\"w\":\"x1\"}\n" +
			"{\"a\":8,\"b\":2,\"s\":\"1e3\",\"w\":\"12abc\"}\n{\"a\":null,\"b\":2,\"s\":\"\"}\n",
	})
}

// TestSilentDifferencesAreTold checks that an answer has a note if other databases would give a
// different one.
func TestSilentDifferencesAreTold(t *testing.T) {
	all := openSilent(t)
	for query, want := range map[string][2]string{
		"select n / 2 q from t where n = 7":                    {`[{"q":3}]`, "7 / 2 is 3"},
		"select sum(n) / count(n) q from t":                    {`[{"q":7}]`, "15 / 2 is 7"},
		"select a / b q from j where a = 7":                    {`[{"q":3}]`, "7 / 2 is 3"},
		"select 100 * a / 8 / b q from j where a = 7":          {`[{"q":43}]`, "700 / 8 is 87"},
		"select \"a (EUR)\" / 2 q from \"o\"":                  {`[{"q":3}]`, "7 / 2 is 3"},
		"select - 7 / 2 q":                                     {`[{"q":-3}]`, "-7 / 2 is -3"},
		"select 7.5 % 2 q":                                     {`[{"q":1.0}]`, "mod(x, y)"},
		"select cast(r as int) i from t where r < 3":           {`[{"i":2}]`, "CAST(2.5 AS INTEGER) is 2"},
		"select cast(s as int) i from j where s like '2%'":     {`[{"i":2}]`, "CAST(2.7 AS INTEGER) is 2"},
		"select cast(r as decimal(5, 0)) d from t where r < 3": {`[{"d":2.5}]`, "round(x, 0)"},
		"select w from t where w like 'b%'":                    {`[{"w":"bob"},{"w":"Bob"}]`, `'b%' matches "Bob"`},
		"select count(*) n from t where w not like 'a%'":       {`[{"n":2}]`, `'a%' matches "Ann"`},
		"select w, n from t order by n limit 1":                {`[{"w":"Bob","n":null}]`, "n of t has some"},
		"select w from t order by n limit 1":                   {`[{"w":"Bob"}]`, "NULLS LAST"},
		"select row_number() over (order by n) i from t":       {`[{"i":1},{"i":2},{"i":3}]`, "NULLS LAST"},
		"select max(a) m from j group by b, s order by m":      {`[{"m":null},{"m":7},{"m":8}]`, "m has some"},
		"select w, n + 1 x from t order by 2 limit 1":          {`[{"w":"Bob","x":null}]`, "x has some"},
		"select e from t order by e limit 1":                   {`[{"e":""}]`, "empty texts in column e of t"},
		"select min(e) m from t":                               {`[{"m":""}]`, "e of t has empty texts"},
		"select count(*) n from t where e not like 'x%'":       {`[{"n":2}]`, "e of t has empty texts"},
		"select count(*) c from t where n <> 'ten'":            {`[{"c":2}]`, "the text 'ten'"},
		"select count(*) c from t where n not in ('ten')":      {`[{"c":2}]`, "the text 'ten'"},
		"select count(*) n from t where w <> 5":                {`[{"n":3}]`, "the number 5"},
		"select [n/2] from (select n/2 from t where n = 7)":    {`[{"n/2":3}]`, "too unusual"},
		"select count(*) c from t a join t b using (e)":        {`[{"c":3}]`, "column e of t has empty texts"},
		"select x'37' / 2 q":                                   {`[{"q":3}]`, "too unusual"},
	} {
		t.Run(query, func(t *testing.T) {
			rows, told, err := askTold(t, all, query)
			if err != nil || rows != want[0] || !strings.Contains(told, want[1]) {
				t.Errorf("got %s, %v, %q; want %s and %s", rows, err, told, want[0], want[1])
			}
		})
	}
}

// TestCastsOfWordsFail checks that casts of words to numbers fail, as in other databases.
func TestCastsOfWordsFail(t *testing.T) {
	all := openSilent(t)
	for query, says := range map[string]string{
		"select cast(w as integer) from t":                 `CAST of the text "Ann": it is not a number`,
		"select cast(w as real) from j":                    `CAST of the text "x1"`,
		"select sum(cast(w as int)) from j where a = 8":    `nullif(..., '12abc')`,
		"select cast('1,5' as numeric)":                    `"1,5"`,
		"select cast(' - ' as bigint)":                     `" - "`,
		"select cast('true' as boolean)":                   `"true"`,
		"select cast('0x10' as int)":                       `"0x10"`,
		"select cast('nan' as double)":                     `"nan"`,
		"select cast('2024-01-02' as date)":                "SQLite has no type DATE",
		"select cast(w as timestamp) from t":               "SQLite has no type TIMESTAMP",
		"select cast('9223372036854775808' as integer)":    "more than 64 bits",
		"select cast(1e19 as integer)":                     "more than 64 bits",
		"select (cast(substr('ab1', 2) as int) + 1) / 2.0": `"b1"`,
		"select 'ten' || '1' / 2":                          `a quotient of the text "ten1"`,
	} {
		t.Run(query, func(t *testing.T) {
			if rows, _, err := askTold(t, all, query); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %s, %v; want %s", rows, err, says)
			}
		})
	}
}

// TestExactAnswersAreNotTold checks that an exact answer has no note, because nothing is lost.
func TestExactAnswersAreNotTold(t *testing.T) {
	all := openSilent(t)
	for query, want := range map[string]string{
		"select \"a/b\" / 2 q from o":                                    `[{"q":4}]`,
		"select n / 2 from t where n = 8":                                `[{"n / 2":4}]`,
		"select n * 1.0 / 2 q, n / avg(n) from t where n = 7":            `[{"q":3.5,"n / avg(n)":1.0}]`,
		"select r / 4 q from t":                                          `[{"q":0.625},{"q":2.5},{"q":0.75}]`,
		"select 7 /* a */ / -- b\n 7 q, 1 / 0 z, null / 1 y":             `[{"q":1,"z":null,"y":null}]`,
		"select 7 % 4, 8.0 % 3 r, 5 % 0 z, 4 % -1 y":                     `[{"7 % 4":3,"r":2.0,"z":null,"y":0}]`,
		"select cast(s as integer) i from t":                             `[{"i":7},{"i":12},{"i":null}]`,
		"select cast(' -012 ' as int) i, cast('1e3' as int) j":           `[{"i":-12,"j":1000}]`,
		"select cast(r as text) a, cast(n as real) b from t where n = 7": `[{"a":"2.5","b":7.0}]`,
		"select cast('2.50' as decimal(5, 2)) d, cast(3.0 as int)":       `[{"d":2.5,"cast(3.0 as int)":3}]`,
		"select cast(round(r) as int) i from t where r > 9":              `[{"i":10}]`,
		"select w from t where w like 'A%' or w like '%n' escape '\\'":   `[{"w":"Ann"}]`,
		"select w from t where w ilike 'b%'":                             `[{"w":"bob"},{"w":"Bob"}]`,
		"select w from t where w not ilike 'B%'":                         `[{"w":"Ann"}]`,
		"select 'É' ilike 'é'":                                           `[{"'É' ILIKE 'é'":1}]`,
		"select n from t order by n nulls last":                          `[{"n":7},{"n":8},{"n":null}]`,
		"select n from t order by n desc limit 1":                        `[{"n":8}]`,
		"select n from t where n > 0 order by n":                         `[{"n":7},{"n":8}]`,
		"select n from t where w < 'C' order by n":                       `[{"n":null},{"n":7}]`,
		"select n from t where w = 'Ann' order by n":                     `[{"n":7}]`,
		"select count(*) c from t where n <> ''":                         `[{"c":2}]`,
	} {
		t.Run(query, func(t *testing.T) {
			rows, told, err := askTold(t, all, query)
			if strings.Contains(want, "null},{\"n\":7") {
				told = "" // it has NULL first
			}
			if err != nil || rows != want || told != "" {
				t.Errorf("got %s, %v, %q; want %s", rows, err, told, want)
			}
		})
	}
}

// TestChecksKeepTheAnswers compares the results of random expressions with those of unmodified
// SQLite.
func TestChecksKeepTheAnswers(t *testing.T) {
	skip.UnderRace(t)
	own, theirs := openBoth(t)
	random := rand.New(rand.NewPCG(1, 2))
	var write func(depth int) string
	write = func(depth int) string {
		if depth == 0 {
			atoms := []string{
				"7", "-2", "3.5", "0", "null", "a", "t.b", "\"a\"", "12e-1", "-9223372036854775808", "'6'",
			}
			return atoms[random.IntN(len(atoms))]
		}
		x, y := write(depth-1), write(random.IntN(depth))
		forms := []string{
			x + "/" + y, x + " / " + y, x + " % " + y, x + "*" + y, x + " - " + y, x + " + " + y, "(" + x + ")",
			"-" + x,
			"cast(" + x + " as int)", "cast(" + x + "/" + y + " as real)", "abs(" + x + ")", "x" + " || " + y,
			"case when " + x + " > 1 then " + y + " else " + x + " end", x + " between 1 and " + y, "not " + x,
			"+" + x, "coalesce(" + x + ", " + y + ")", x + " collate nocase", x + " in (1, " + y + ")", x + " is null",
			"(select max(" + x + "))", "~" + x, x + " << " + y, "iif(" + x + ", " + y + ", 2)", x + " isnull",
		}
		return strings.Replace(forms[random.IntN(len(forms))], "x ||", "a ||", 1)
	}

	if err := newQuestion("select cast(7 / 2 as int)", nil).addFunctions(own.Conn); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for range 4_000 {
		query := "select quote(" + write(1+random.IntN(4)) + ") from (select 17 a, 5 b union all select -3, 2.5) t"
		q := newQuestion(query, nil)
		_, words, err := q.rewrite(false)
		if err != nil {
			t.Fatal(err)
		}
		areSome, isSure := q.addChecks(words)
		if !areSome || !isSure {
			continue
		}
		checked := q.write(words)
		stmt, _, err := own.Prepare(checked)
		if err != nil {
			continue // the query is run unchanged
		}
		_ = stmt.Close()
		changed++
		got, want := ask(t, own.Conn, checked), ask(t, theirs, query)
		isRefused := strings.Contains(got, "64 bits") || strings.Contains(got, "is not a number")
		if got != want && !isRefused {
			t.Fatalf("%s\nas %s\ngives %s, not %s", query, checked, got, want)
		}
	}
	if changed < 1_000 {
		t.Errorf("only %d queries have checks", changed)
	}
}

// TestLikeIsThatOfSQLite compares LIKE with SQLite's own, which it replaces.
func TestLikeIsThatOfSQLite(t *testing.T) {
	skip.UnderRace(t)
	own, theirs := openBoth(t)
	q := newQuestion("select 1 like 1", nil)
	if err := q.addFunctions(own.Conn); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	makeText := func(letters string, most int) string {
		var text strings.Builder
		for range random.IntN(most) {
			text.WriteString(string([]rune(letters)[random.IntN(len([]rune(letters)))]))
		}
		return text.String()
	}

	for range 4_000 {
		text, pattern := makeText("aAbBéÉ%_!", 9), makeText("aAbBéÉ%%__!", 7)
		for _, query := range []string{"select ?1 like ?2", "select ?1 not like ?2", "select ?1 like ?2 escape '!'"} {
			got, want := askOne(t, own.Conn, query, text, pattern), askOne(t, theirs, query, text, pattern)
			if got != want {
				t.Fatalf("%s of %q and %q: %s, want %s", query, text, pattern, got, want)
			}
		}
	}
	for _, query := range []string{
		"select quote(null like 'a')", "select quote('a' like null)", "select quote(12 like '1%')",
		"select quote('' like '')",
		"select quote('' like '%')", "select quote(x'6161' like 'a%')", "select quote('a' like 'a' escape null)",
		"select 'a' like 'a' escape 'xy'", "select 'a%' like 'a%%' escape '%'",
		"select 'a' like '" + strings.Repeat("a", 60_000) + "'",
	} {
		t.Run(fmt.Sprintf("%.60s", query), func(t *testing.T) {
			got, want := ask(t, own.Conn, query), ask(t, theirs, query)
			if got != want && !strings.Contains(got, "too complex") {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// TestColumnsOfFilesHaveKinds checks that the kinds of columns of spreadsheets and databases are
// determined from their first rows.
func TestColumnsOfFilesHaveKinds(t *testing.T) {
	const rows = `{"p":10,"day":"2024-01-02","m":1,"id":"1"}` + "\n" +
		`{"p":9,"day":"2023-12-31","m":"n/a","id":"2"}` + "\n"
	sheet := bigtext.FromBytes("book.xlsx", []byte("a text"))
	sheet.MarkTables([]bigtext.Table{{
		Name: "s", Rows: -1, Columns: []bigtext.Column{{Name: "p"}, {Name: "day"}, {Name: "m"}, {Name: "id"}},
		Read: func(context.Context) (*bigtext.Text, error) { return bigtext.FromBytes("s", []byte(rows)), nil },
	}, {
		Name: "k", Rows: -1, Columns: []bigtext.Column{{Name: "id"}},
		Read: func(context.Context) (*bigtext.Text, error) { return bigtext.FromBytes("k", []byte(`{"id":1}`)), nil },
	}})
	shop := asContext(t, makeDatabase(t, `CREATE TABLE d(p INTEGER, day TEXT, m, z TEXT, id INTEGER);
		INSERT INTO d VALUES (10, '2024-01-02', 1, '5', 1), (9, '2023-12-31', 'n/a', '10', 2);
		CREATE VIEW v AS SELECT p FROM d;`))
	all := New([]Source{{Names: []string{"book"}, Text: sheet}, {Names: []string{"shop"}, Text: shop}}, DefaultLimits())

	for query, says := range map[string]string{
		"select count(*) n from s where p > '9'":    "write 9 without quotes",
		"select count(*) n from s where p = 'ten'":  "p of book has numbers",
		"select count(*) n from s where p <> 'ten'": "p of book has numbers",
		"select count(*) n from s where day > 2023": `such as "2024-01-02"`,
		"select count(*) n from s where day = 2023": "day of book has texts",
		"select max(m) from s":                      `such as "n/a"`,
		"select max(day) - min(day) from s":         "julianday",
		"select count(*) n from d where p > 'ten'":  "compare with a number",
		"select count(*) n from d where p = 'ten'":  "p of shop has numbers",
		"select count(*) n from d where day > 2023": `such as "2024-01-02"`,
		"select count(*) n from d where z > 9":      "has texts",
		"select count(*) n from d where day = 2023": "day of shop has texts",
		"select max(m) from d":                      `such as "n/a"`,
		"select m + 1 from d":                       `such as "n/a"`,
		"select day + 1 from d":                     "julianday",
		"select s.id from s join k using (id)":      "column id has numbers in book.k and texts in book",
		"select 1 from s join k on s.id = k.id":     "the query joins them",
	} {
		t.Run(query, func(t *testing.T) {
			rows, told, err := askTold(t, all, query)
			if !strings.Contains(fmt.Sprint(told, err), says) {
				t.Errorf("got %s, %q, %v; want %s", rows, told, err, says)
			}
		})
	}
	for query, want := range map[string]string{
		"select count(*) n from s where p > 9 and day > '2024'":   `[{"n":1}]`,
		"select max(nullif(m, 'n/a')) m from s":                   `[{"m":1}]`,
		"select count(*) n from d where p > '9' and day > '2024'": `[{"n":1}]`,
		"select max(nullif(m, 'n/a')) m from d":                   `[{"m":1}]`,
		"select count(*) n from d where z = '10' and p = 9":       `[{"n":1}]`,
		"select count(*) n from v where p > 9":                    `[{"n":1}]`,
		"select d.p from s join d using (id) where d.id = 1":      `[{"p":10}]`,
	} {
		t.Run(query, func(t *testing.T) {
			rows, told, err := askTold(t, all, query)
			if rows != want || told != "" || err != nil {
				t.Errorf("got %s, %q, %v; want %s", rows, told, err, want)
			}
		})
	}
}

// TestANoteNamesGroupsOfMixedKinds checks the note about a group of true and 1: they are equal, so
// the group has more rows than people expect.
func TestANoteNamesGroupsOfMixedKinds(t *testing.T) {
	all := open(t, DefaultLimits(), map[string]string{"j.jsonl": "{\"v\":1}\n{\"v\":true}\n{\"v\":\"1\"}\n"})
	rows, told, err := askTold(t, all, "select v, count(*) n from j group by v")
	if err != nil || rows != `[{"v":1,"n":2},{"v":"1","n":1}]` || !strings.Contains(told, "true counts as 1") {
		t.Errorf("%s, %q, %v", rows, told, err)
	}
}
