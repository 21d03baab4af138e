package tablesql

import (
	"context"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// openJoined returns a workbook whose tables have keys of different kinds.
func openJoined() *Tables {
	sheet := bigtext.FromBytes("book.xlsx", []byte("a text"))
	table := func(name, rows string) bigtext.Table {
		return bigtext.Table{
			Name: name, Rows: -1, Columns: []bigtext.Column{{Name: "id"}, {Name: "v"}},
			Read: func(context.Context) (*bigtext.Text, error) { return bigtext.FromBytes(name, []byte(rows)), nil },
		}
	}
	sheet.MarkTables([]bigtext.Table{
		table("n", `{"id":1,"v":1}`), table("m", `{"id":1,"v":1}`), table("w", `{"id":"1","v":"x"}`),
	})
	return New([]Source{{Names: []string{"book"}, Text: sheet}}, DefaultLimits())
}

// TestJoinsOfOtherTablesAreNotTold checks that only the tables that a join compares by their
// aliases matter, or all tables of the query if it is not clear which are joined.
func TestJoinsOfOtherTablesAreNotTold(t *testing.T) {
	all := openJoined()
	for query, isTold := range map[string]bool{
		"select 1 from n join w using (id)":                                                                   true,
		"select 1 from book.n a join book.w as b on a.id = b.id":                                              true,
		"select 1 from n a, w b where b.id = a.id":                                                            true,
		"select 1 from n join m using (id) join w using (id)":                                                 true,
		"select 1 from n where exists (select 1 from w where w.id = n.id)":                                    true,
		"select 1 from n join (select id from w) s on n.id = s.id":                                            true,
		"with s as (select * from w) select 1 from n join s using (id)":                                       true,
		"with n as (select * from w) select 1 from n join m on n.id = m.id":                                   true,
		"select 1 from n a join m b on a.id = b.id join w a2 on a2.v = 'x'":                                   false,
		"select 1 from n join m using (id) cross join w":                                                      false,
		"select 1 from n join m on m.id = n.id where 'x' in (select v from w)":                                false,
		"select 1 from n a, m b, w c where a.id = b.id":                                                       false,
		"select (select count(*) from w) c, 1 from n join m using (id)":                                       false,
		"select 1 from w join w b using (id) where b.v in (select 'x' from n)":                                false,
		"select 1 from (select n.id from n join m using (id)) s where s.id is not null union select 1 from w": false,
	} {
		t.Run(query, func(t *testing.T) {
			rows, told, err := askTold(t, all, query)
			if err != nil || strings.Contains(told, "the query joins them") != isTold {
				t.Errorf("got %s, %q, %v; want a note: %v", rows, told, err, isTold)
			}
		})
	}
}
