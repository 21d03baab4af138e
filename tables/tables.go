// Package tables lets snippets query tables with SQL:
//
//	engine, err := rlm.New(rlm.Options{SQL: tables.SQL})
//
// It links SQLite, which a program without the function sql does not need.
package tables

import (
	"fmt"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tablesql"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

var _ repl.SQL = SQL

// SQL finds the inputs that are tables: CSV and JSON Lines texts, and files that contain tables,
// see package inputs. Each query runs in its own SQLite engine, which is bounded in time, memory
// and rows.
func SQL(inputs []tiers.Input) repl.Tables {
	tables := tablesql.New(listSources(inputs), tablesql.DefaultLimits())
	if tables == nil {
		return nil
	}
	return tables
}

// listSources returns the texts among the inputs, by the names that snippets use.
func listSources(inputs []tiers.Input) []tablesql.Source {
	var sources []tablesql.Source
	for i, in := range inputs {
		text, isMapped := in.Text.(*bigtext.Text)
		if !isMapped {
			continue
		}
		names := []string{fmt.Sprintf("context_%d", i)}
		if i == 0 {
			names = []string{"context", "context_0"}
		}
		if in.Variable != "" {
			names = append([]string{in.Variable}, names...)
		}
		sources = append(sources, tablesql.Source{Names: names, Text: text})
	}
	return sources
}
