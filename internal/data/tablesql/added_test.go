package tablesql

import (
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// searched is a virtual table of one row that interprets MATCH as its own search, as FTS5 does, and
// finds nothing.
type searched struct{}

func (searched) BestIndex(info *sqlite3.IndexInfo) error {
	for i, one := range info.Constraint {
		if one.Usable && one.Op == sqlite3.INDEX_CONSTRAINT_MATCH {
			info.ConstraintUsage[i] = sqlite3.IndexConstraintUsage{ArgvIndex: 1, Omit: true}
			info.IdxNum = 1
		}
	}
	return nil
}

func (searched) Open() (sqlite3.VTabCursor, error) { return &searchCursor{}, nil }

type searchCursor struct{ atEnd bool }

func (c *searchCursor) Filter(index int, _ string, _ ...sqlite3.Value) error {
	c.atEnd = index == 1
	return nil
}

func (c *searchCursor) Next() error                             { c.atEnd = true; return nil }
func (c *searchCursor) EOF() bool                               { return c.atEnd }
func (c *searchCursor) RowID() (int64, error)                   { return 1, nil }
func (c *searchCursor) Column(ctx sqlite3.Context, _ int) error { ctx.ResultText("Ann"); return nil }

// TestIlikeIsNoSearch checks that a virtual table does not interpret ILIKE as MATCH.
func TestIlikeIsNoSearch(t *testing.T) {
	own, _ := openBoth(t)
	construct := func(db *sqlite3.Conn, _, _, _ string, _ ...string) (searched, error) {
		return searched{}, db.DeclareVTab("CREATE TABLE t(w TEXT)")
	}
	//nolint:staticcheck // the method that replaces it needs a later Go
	if err := sqlite3.CreateModule(own.Conn, "searched", construct, construct); err != nil {
		t.Fatal(err)
	}
	if err := own.Exec("CREATE VIRTUAL TABLE d USING searched"); err != nil {
		t.Fatal(err)
	}

	const query = "select count(*) from d where w ilike 'a%' and w not ilike 'b_n' and w ilike 'a!nn' escape '!'"
	q := newQuestion(query, nil)
	if err := q.addFunctions(own.Conn); err != nil {
		t.Fatal(err)
	}
	sql, _, err := q.rewrite(false)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, own.Conn, sql); got != "1" {
		t.Errorf("%s gives %q", sql, got)
	}
	if got := ask(t, own.Conn, "select count(*) from d where w match 'a%'"); got != "0" {
		t.Errorf("the table takes no MATCH: %q", got)
	}
}

// TestIlikeAndTryCast runs queries with ILIKE and TRY_CAST, which SQLite lacks, and checks which
// forms are refused.
func TestIlikeAndTryCast(t *testing.T) {
	all := openSilent(t)
	for query, want := range map[string]string{
		"select w from t where w regexp '^A' or w ilike 'BO%'":       `[{"w":"Ann"},{"w":"bob"},{"w":"Bob"}]`,
		"select w from t where w ilike 'b' || '%' and w ilike 'B%b'": `[{"w":"bob"},{"w":"Bob"}]`,
		"select 'a%' ilike 'A!%' escape '!'":                         `[{"'a%' ILIKE 'A!%' escape '!'":1}]`,
		"select 'a' ilike null n, null ilike 'a' m":                  `[{"n":null,"m":null}]`,
		"select 'a' ilike ('a') i":                                   `[{"i":1}]`,
		"select try_cast(w as integer) i from j":                     `[{"i":null},{"i":null},{"i":null}]`,
		"select TRY_CAST(s AS REAL) from j limit 1":                  `[{"TRY_CAST(s AS REAL)":2.7}]`,
		"select try_cast(s as real) r from j":                        `[{"r":2.7},{"r":1000.0},{"r":null}]`,
		"select try_cast('12' as bigint) i":                          `[{"i":12}]`,
		"select try_cast('12a' as decimal(9,2)) d":                   `[{"d":null}]`,
		"select try_cast('9223372036854775808' as int) i":            `[{"i":null}]`,
		"select try_cast(1e19 as int)":                               `[{"TRY_CAST(1e19 as int)":null}]`,
		"select try_cast(n as varchar(9)) a from t limit 1":          `[{"a":"7"}]`,
		"select try_cast(w as text) b from t limit 1":                `[{"b":"Ann"}]`,
		"select sum(try_cast(w as int)) s from t":                    `[{"s":null}]`,
		"select try_cast(case when 1 then '4' end as int) / 2 h":     `[{"h":2}]`,
		"select count(*) n from t where try_cast(w as int) is null":  `[{"n":3}]`,
		"select a from j join t on t.n = try_cast(j.w as int)":       `[]`,
	} {
		t.Run(query, func(t *testing.T) {
			rows, told, err := askTold(t, all, query)
			if err != nil || rows != want || told != "" {
				t.Errorf("got %s, %v, %q; want %s", rows, err, told, want)
			}
		})
	}

	for query, says := range map[string]string{
		"select w from t where w match 'ann' or w ilike 'b%'":  "unable to use function MATCH",
		"select 'a' ilike 'a' < 2":                             "in parentheses",
		"select 'a' regexp 'a' escape '!', 'a' ilike 'a'":      "REGEXP has no ESCAPE",
		"select try_cast(w as date) from t":                    "date(x) gives NULL",
		"select try_cast('true' as boolean)":                   "TRY_CAST to BOOLEAN is not possible",
		"select try_cast('1 day' as interval)":                 "TRY_CAST to INTERVAL",
		"select try_cast(w) from t":                            "write TRY_CAST(x AS type)",
		"select cast(w as int) from t":                         "TRY_CAST(x AS type), which gives NULL",
		"select cast(j.w as int) i from j join t on j.a = t.n": "CASE WHEN",
	} {
		t.Run(query, func(t *testing.T) {
			if rows, _, err := askTold(t, all, query); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %s, %v; want %s", rows, err, says)
			}
		})
	}
}
