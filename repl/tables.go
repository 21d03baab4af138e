package repl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// SQL finds the inputs that are tables, so that the function sql can query them. It returns nil
// if there are none. [github.com/rlmhq/rlm/tables.SQL] is an implementation.
type SQL func(inputs []tiers.Input) Tables

// Tables answer the queries of one session. They are safe for concurrent use.
type Tables interface {
	// Describe lists the tables for a prompt, each with its columns and their types.
	Describe() string
	// Query runs one query and returns its rows, a list of dicts. Params is a list for ? or a dict
	// for :name. Both are hostile: a query that takes too long or returns too much is an error.
	Query(ctx context.Context, query string, params tiers.Value) (tiers.Value, error)
}

// WithTables returns a copy of t in which the function sql queries the inputs that are tables. It
// replaces a function sql that was made for earlier inputs, but no other tool of that name. With a
// nil sql, the copy has no such function. A nil t has no tools.
func (t *Tools) WithTables(sql SQL, inputs []tiers.Input) (*Tools, error) {
	t = t.withoutTables()
	if sql == nil {
		return t, nil
	}
	tables := sql(inputs)
	if tables == nil {
		return t, nil
	}
	if t != nil {
		if _, isTaken := t.byName[protocol.SQL]; isTaken {
			return t, nil
		}
	}

	return t.With(Tool{
		Name: protocol.SQL, Signature: protocol.SQL + "(query, params=None)",
		Doc: "runs one SELECT of SQLite on the inputs that are tables, on the host, and returns a list of " +
			"dicts. `params` is a list for `?` or a dict for `:name`.",
		Timed: true,
		notes: func() string {
			return "The tables of sql, each with columns and types:\n" + tables.Describe()
		},
		Call: func(ctx context.Context, args map[string]tiers.Value) (tiers.Value, error) {
			if len(args["query"]) > mostQuery || len(args["params"]) > mostParams {
				return nil, fmt.Errorf("sql: the query has more than %s, or params more than %s",
					quantity.IBytes(mostQuery), quantity.IBytes(mostParams))
			}
			var query string
			if err := json.Unmarshal(args["query"], &query); err != nil {
				return nil, errors.New("sql: query must be a str")
			}
			return tables.Query(ctx, query, args["params"])
		},
	})
}

// The bounds on the values that sql decodes, in bytes of JSON. The engine has its own bounds.
const (
	mostQuery  = 1 << 20
	mostParams = 64 << 20
)

// withoutTables returns t without a function added by WithTables.
func (t *Tools) withoutTables() *Tools {
	if t == nil {
		return nil
	}
	i, has := t.byName[protocol.SQL]
	if !has || t.list[i].notes == nil {
		return t
	}

	var names []string
	for _, tool := range t.list {
		if tool.Name != protocol.SQL {
			names = append(names, tool.Name)
		}
	}
	return t.Only(names)
}
