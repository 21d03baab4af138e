// Package tables allows snippets to query tables with SQL:
//
//	engine, err := rlm.New(rlm.Options{SQL: tables.SQL})
//
// It links SQLite, which a program without the function sql does not need.
package tables

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tablesql"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

var _ repl.SQL = SQL

// SQL finds the inputs that are tables: CSV and JSON Lines texts, and files that contain tables
// (see package inputs). Each query runs in a separate SQLite engine, whose time, memory and rows
// are bounded.
func SQL(inputs []tiers.Input) repl.Tables {
	tables := tablesql.New(listSources(inputs), tablesql.DefaultLimits())
	if tables == nil {
		return nil
	}
	return tables
}

// listSources returns the texts among the inputs and the files of small folders, by the names that
// snippets use.
func listSources(inputs []tiers.Input) []tablesql.Source {
	var sources []tablesql.Source
	for i, in := range inputs {
		if dir, isMapped := in.Dir.(*bigtext.Dir); isMapped {
			sources = append(sources, listFiles(dir)...)
		}
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
		sources = append(sources, tablesql.Source{Names: names, File: filepath.Base(text.Name()), Text: text})
	}
	return sources
}

// listFiles returns the files of a folder whose extensions show that they may be tables, because
// opening other files takes time. A folder closes texts if too many are open, so a large folder has
// no tables.
func listFiles(dir *bigtext.Dir) []tablesql.Source {
	if !dir.KeepsOpen() {
		return nil
	}

	var sources []tablesql.Source
	for _, name := range dir.Names() {
		if !tablesql.MayBeTable(name) {
			continue
		}
		text, err := dir.Text(context.Background(), name)
		if err != nil {
			continue // a snippet that opens the file receives the error
		}
		sources = append(sources, tablesql.Source{File: name, Text: text})
	}
	return sources
}
