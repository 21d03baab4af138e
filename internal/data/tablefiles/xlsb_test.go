package tablefiles_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
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

// The kinds of records that the next test changes: see internal/machine/rustmodule/xlsb.rs.
const (
	cellText   = 6
	cellBool   = 4
	richText   = 62
	wrongValue = 11
)

// TestOtherCellsOfBinaryWorkbooksAreRead changes texts to texts with fonts, and booleans to errors
// of formulas, which Excel writes and no library does.
func TestOtherCellsOfBinaryWorkbooksAreRead(t *testing.T) {
	data := changeRecords(t, readSample(t, "book.xlsb"), func(kind byte, body []byte) (byte, []byte) {
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

// changeRecords changes the records of kinds below 128 in the sheets of a binary workbook.
func changeRecords(t *testing.T, data []byte, change func(kind byte, body []byte) (byte, []byte)) []byte {
	t.Helper()
	book, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range book.File {
		isSheet, _ := filepath.Match("xl/worksheets/*.bin", f.Name)
		if !isSheet {
			if err := w.Copy(f); err != nil {
				t.Fatal(err)
			}
			continue
		}
		member, err := w.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Write(changeSheet(readMember(t, f), change)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func readMember(t *testing.T, f *zip.File) []byte {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func changeSheet(sheet []byte, change func(kind byte, body []byte) (byte, []byte)) []byte {
	var out []byte
	for len(sheet) > 0 {
		kind := sheet[:1]
		if kind[0] >= 0x80 {
			kind = sheet[:2]
		}
		length, n := binary.Uvarint(sheet[len(kind):])
		start := len(kind) + n
		body := sheet[start:][:length]
		sheet = sheet[start+len(body):]

		if len(kind) == 1 {
			var changed byte
			changed, body = change(kind[0], body)
			kind = []byte{changed}
		}
		out = binary.AppendUvarint(append(out, kind...), uint64(len(body)))
		out = append(out, body...)
	}
	return out
}

func readSample(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
