package tablesql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// trees are queries without loops and without recursion: each level queries the one below twice.
var trees = map[string]func(depth int) string{
	"tables of a query": func(depth int) string {
		return "with t0 as (select 1 x)" + levels(depth, func(self, below int) string {
			return fmt.Sprintf(", t%d as (select x from t%d union all select x from t%[2]d)", self, below)
		}) + fmt.Sprintf(" select count(*) n from t%d", depth)
	},
	"joins": func(depth int) string {
		return "with t(x) as (values (0), (1)) select count(*) n from t t0" + levels(depth-1, func(self, _ int) string {
			return fmt.Sprintf(" cross join t t%d", self)
		})
	},
	"nested queries": func(depth int) string {
		query := "1"
		for i := range depth {
			query = fmt.Sprintf("(select sum(%s) from (values (%d), (2)))", query, i)
		}
		return "select " + query + " n"
	},
}

func levels(depth int, level func(self, below int) string) string {
	var b strings.Builder
	for i := 1; i <= depth; i++ {
		b.WriteString(level(i, i-1))
	}
	return b.String()
}

// TestTreesOfQueriesEndWithTheirTime checks that such queries end at their time limit. The control
// is a tree of five levels, which returns a result.
func TestTreesOfQueriesEndWithTheirTime(t *testing.T) {
	tables := usual(t)
	errOver := errors.New("the time is over")
	for name, tree := range trees {
		t.Run(name, func(t *testing.T) {
			if rows, err := tables.Query(t.Context(), tree(5), nil); string(rows) != `[{"n":32}]` {
				t.Errorf("%s of five levels: %s, %v", name, rows, err)
			}

			ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errOver)
			if rows, err := tables.Query(ctx, tree(28), nil); err == nil {
				t.Errorf("%s of 28 levels: %.100s", name, rows)
			} else {
				t.Logf("%s: %v", name, err)
			}
			cancel()
		})
	}
}
