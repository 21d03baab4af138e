package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/documents"
	"github.com/rlmhq/rlm/internal/data/tablefiles"
	"github.com/rlmhq/rlm/internal/data/tablesql"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// findTables marks the tables in a file, and returns sentences about them. If the tables cannot be
// read, none are marked, and a sentence reports that.
func (r *reader) findTables(ctx context.Context, text *bigtext.Text, found *document) ([]string, error) {
	if found == nil && text.Kind() == bigtext.KindCSV && !text.IsBinary() {
		text.MarkCSV(r.csv)
		return describeLayout(text)
	}
	file := r.findTableFile(text, found)
	if file == nil {
		return nil, nil
	}
	original := text.Original()
	if file == (jsonArray{}) {
		original = text // decoded
	}

	tables, err := file.list(ctx, original)
	if errors.Is(err, tablefiles.ErrUnreadable) || errors.Is(err, tablesql.ErrDatabase) {
		return []string{r.explainLimit(err, original.Size()).Error()}, nil
	}
	if errors.Is(err, errNoRows) {
		return nil, nil // a list of other values
	}
	if err != nil {
		return nil, err
	}
	for i := range tables {
		tables[i].Read = func(ctx context.Context) (*bigtext.Text, error) {
			rows, err := r.spool(ctx, original, func(ctx context.Context, out io.Writer) error {
				return file.write(ctx, original, i, tables[i].Name, out)
			})
			if err != nil {
				return nil, fmt.Errorf("cannot read the rows of %s: %w", filepath.Base(text.Name()),
					r.explainLimit(err, original.Size()))
			}
			return rows, nil
		}
	}
	if len(tables) > 0 {
		text.MarkTables(tables)
	}
	notes := describeTables(tables)
	if found != nil && found.isWorkbook {
		notes = append(notes, describeSheets(ctx, original)...)
	}
	if log := text.Name() + "-wal"; file == (database{}) && hasContent(log) {
		notes = append(notes, "what is only in "+filepath.Base(log)+" is not seen: let SQLite run "+
			"PRAGMA wal_checkpoint first")
	}
	return notes, nil
}

func hasContent(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// tableFile reads the tables in one kind of file.
type tableFile interface {
	list(ctx context.Context, file *bigtext.Text) ([]bigtext.Table, error)
	// write writes the rows of a table, identified by its number or its name.
	write(ctx context.Context, file *bigtext.Text, number int, name string, out io.Writer) error
}

// findTableFile returns a reader for the tables in a file, or nil if the file has no tables.
func (r *reader) findTableFile(text *bigtext.Text, found *document) tableFile {
	switch {
	case found != nil && found.isWorkbook && found.kind == documents.SpreadsheetXML:
		return moduleTables{r, tablefiles.SpreadsheetXML}
	case found != nil && found.isWorkbook:
		return moduleTables{r, tablefiles.Workbook}
	case found == nil && text.Kind() == bigtext.KindJSON && startsArray(text):
		return jsonArray{}
	case found != nil || !text.IsBinary():
		return nil
	case text.Kind() == kindParquet:
		return moduleTables{r, tablefiles.Parquet}
	case text.Kind() == kindArrow:
		return moduleTables{r, tablefiles.Arrow}
	case text.Kind() == tablesql.KindDatabase:
		return database{}
	}
	return nil
}

// moduleTables is a file whose tables the module of package tablefiles reads.
type moduleTables struct {
	*reader
	kind tablefiles.Kind
}

func (m moduleTables) list(ctx context.Context, file *bigtext.Text) ([]bigtext.Table, error) {
	return tablefiles.List(ctx, m.tableOptions(), m.kind, wholeOf(file))
}

func (m moduleTables) write(ctx context.Context, file *bigtext.Text, number int, _ string, out io.Writer) error {
	return tablefiles.Rows(ctx, m.tableOptions(), m.kind, number, wholeOf(file), out)
}

func wholeOf(file *bigtext.Text) *io.SectionReader { return io.NewSectionReader(file, 0, file.Size()) }

// database is a file that SQLite reads.
type database struct{}

func (database) list(ctx context.Context, file *bigtext.Text) ([]bigtext.Table, error) {
	return tablesql.ListDatabase(ctx, file)
}

func (database) write(ctx context.Context, file *bigtext.Text, _ int, name string, out io.Writer) error {
	return tablesql.WriteRows(ctx, file, name, out)
}

func (r *reader) tableOptions() tablefiles.Options {
	o := r.documentOptions()
	start := rustmodule.Start{CacheDir: o.CacheDir, Progress: o.Progress}
	return tablefiles.Options{Start: start, Bounds: o.Bounds}
}

// describeTables returns a sentence for each of the first tables.
func describeTables(tables []bigtext.Table) []string {
	const most = 20
	var notes []string
	for i, table := range tables {
		if i == most {
			notes = append(notes, quantity.Plural(len(tables)-i, "more table", ""))
			break
		}
		what := "it is a table"
		if table.Name != "" {
			what = fmt.Sprintf("table %q", shorten(table.Name))
		}
		if table.Rows >= 0 {
			what += " of " + quantity.Plural(table.Rows, "row", "")
		}
		notes = append(notes, what+", whose columns are "+describeColumns(table.Columns))
	}
	return notes
}

func describeColumns(columns []bigtext.Column) string {
	const most = 30
	if len(columns) == 0 {
		return "none"
	}

	var shown []string
	for i, column := range columns {
		if i == most {
			shown = append(shown, "and "+quantity.Comma(len(columns)-i)+" more")
			break
		}
		shown = append(shown, strings.TrimSpace(shorten(column.Name)+" "+shorten(column.Type)))
	}
	return strings.Join(shown, ", ")
}

// shorten returns the beginning of a name from a file, on one line.
func shorten(name string) string {
	const most = 60
	line := strings.Join(strings.FieldsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }), " ")
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return line
}
