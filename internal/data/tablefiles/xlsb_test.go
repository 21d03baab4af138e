package tablefiles_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/documenttruth"
)

// binaryTables returns the tables of the files made by scripts/documents/xlsb.js.
func binaryTables() []truth {
	sales := [][]any{}
	for i := range 20 {
		var note any
		if i%2 == 1 {
			note = fmt.Sprintf("x%d", i)
		}
		sales = append(sales, []any{
			fmt.Sprintf("Grüße %d 漢字", i), float64(i), float64(i) / 8, fmt.Sprintf("2024-03-%02d", i+1), note, i%3 == 0,
		})
	}
	return []truth{
		{"Sales", []string{"name", "count", "share", "day", "note", "ok"}, sales},
		{"Köpfe & more", []string{"key", "value"}, [][]any{{"a", 1e9}, {"b", -2.5}}},
	}
}

func TestBinaryWorkbooksHaveTables(t *testing.T) {
	odd := truth{"Odd", []string{"a", "b", "c", "d"}, [][]any{{1.0, "#N/A", nil, 4.0}}}
	for name, want := range map[string][]truth{
		"book.xlsb":   binaryTables(),
		"short.xlsb":  append(binaryTables(), odd),
		"shared.xlsb": append(binaryTables(), odd),
	} {
		t.Run(name, func(t *testing.T) { checkTables(t, name, readSample(t, name), want) })
	}
}

// The next test changes records of these kinds: see internal/machine/rustmodule/xlsb.rs.
const (
	cellText   = 6
	cellBool   = 4
	richText   = 62
	wrongValue = 11
)

// TestOtherCellsOfBinaryWorkbooksAreRead changes strings to strings with fonts, and booleans to
// errors of formulas: Excel writes such cells, but no library does.
func TestOtherCellsOfBinaryWorkbooksAreRead(t *testing.T) {
	data := documenttruth.ChangeRecords(t, readSample(t, "book.xlsb"), func(kind byte, body []byte) (byte, []byte) {
		switch kind {
		case cellText:
			const hasFonts = 1
			runs := []byte{1, 0, 0, 0, 0, 0, 0, 0}
			return richText, slices.Concat(body[:8], []byte{hasFonts}, body[8:], runs)
		case cellBool:
			const isDivision = 7
			return wrongValue, slices.Concat(body[:8], []byte{isDivision}, make([]byte, 10))
		}
		return kind, body
	})

	want := binaryTables()
	for _, row := range want[0].Rows {
		row[5] = "#DIV/0!"
	}
	checkTables(t, "book.xlsb", data, want)
}

// TestFormulasOfBinaryWorkbooksAreComputed reads a workbook without saved values, as if no
// spreadsheet program had opened it.
func TestFormulasOfBinaryWorkbooksAreComputed(t *testing.T) {
	want := binaryTables()
	last := want[0].Rows[len(want[0].Rows)-1]
	last[2] = 0.0 // its formula is not simple
	checkTables(t, "book.xlsb", documenttruth.DropValues(t, readSample(t, "book.xlsb")), want)
}

func readSample(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
