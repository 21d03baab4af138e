package code

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
)

// rowFormats are the formats of printed rows.
var rowFormats = []string{"table", "json", "csv"}

func (f *graphFlags) addRowFormat(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", rowFormats[0],
		"`form` of the rows: table, json (one object per row) or csv, which never cuts values")
	flags.BoolVar(&f.json, "json", false, "the same as --format json")
}

func (f *graphFlags) checkFormat() error {
	if f.json {
		f.format = "json"
	}
	if !slices.Contains(rowFormats, f.format) {
		return fmt.Errorf("--format %q: give one of %s", f.format, strings.Join(rowFormats, ", "))
	}
	return nil
}

// showRows prints rows in the format of --format.
func (f *graphFlags) showRows(e *cli.Env, columns []string, rows []map[string]any, isCut bool) error {
	switch f.format {
	case "json":
		for _, row := range rows {
			if err := cli.PrintLine(e.Stdout, row); err != nil {
				return err
			}
		}
		return truncation(isCut)
	case "csv":
		return cli.JoinExit(writeCSV(e, columns, rows), truncation(isCut))
	}

	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	line := func(cells []string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) }
	cells := make([]string, len(columns))
	for i, column := range columns {
		cells[i] = cli.Shorten(column, 60)
	}
	line(cells)
	for _, row := range rows {
		for i, column := range columns {
			cells[i] = cli.Shorten(showCell(row[column]), 80)
		}
		line(cells)
	}
	return cli.JoinExit(w.Flush(), truncation(isCut))
}

// writeCSV prints rows as CSV. Null is an empty field; a list or a map is JSON.
func writeCSV(e *cli.Env, columns []string, rows []map[string]any) error {
	stdout, _ := e.SnippetOutput() // a graph may hold control sequences
	w := csv.NewWriter(stdout)
	_ = w.Write(columns) // the writer keeps its error
	fields := make([]string, len(columns))
	for _, row := range rows {
		for i, column := range columns {
			if fields[i] = ""; row[column] != nil {
				fields[i] = showCell(row[column])
			}
		}
		_ = w.Write(fields)
	}
	w.Flush()
	stdout.Flush()
	return w.Error()
}

// showCell formats a value: a string unchanged, anything else as JSON.
func showCell(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	data, err := json.Marshal(value)
	if err != nil { // a float that JSON cannot represent
		return fmt.Sprint(value)
	}
	return string(data)
}

// truncation is the error of a truncated result.
func truncation(isCut bool) error {
	if !isCut {
		return nil
	}
	return cli.Exit(cli.ExitLimit, errors.New("the result was cut: ask for fewer rows, with LIMIT"))
}
