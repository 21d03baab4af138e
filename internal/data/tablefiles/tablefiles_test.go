package tablefiles_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tablefiles"
	"github.com/rlmhq/rlm/internal/data/tablesql"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
	"github.com/rlmhq/rlm/internal/testing/documenttruth"
	"github.com/rlmhq/rlm/internal/testing/testcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// truth is a table as read by the tool that wrote its file.
type truth struct {
	Name    string
	Columns []string
	Rows    [][]any
}

// TestTablesAreThoseOfOtherTools reads small files made by scripts/documents/tables.py.
func TestTablesAreThoseOfOtherTools(t *testing.T) {
	files := samples(t)
	checkAll(t, files)
	if len(files) < 19 {
		t.Errorf("there are %d files only", len(files))
	}
}

// nativePython names a Python with the packages of scripts/documents/requirements.txt.
const nativePython = "RLM_DOCUMENTS_PYTHON"

// TestNewTablesAreThoseOfOtherTools compares the tables of new, larger files.
func TestNewTablesAreThoseOfOtherTools(t *testing.T) {
	python := os.Getenv(nativePython)
	if python == "" {
		t.Skip(nativePython + " names no Python with the tools")
	}
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), python, "../../../scripts/documents/tables.py", dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	checkAll(t, files)
}

// samples returns files by name.
func samples(tb testing.TB) map[string][]byte {
	tb.Helper()
	r, err := zip.OpenReader("testdata/tables.zip")
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()

	files := map[string][]byte{}
	for _, f := range r.File {
		content, err := f.Open()
		if err != nil {
			tb.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(content); err != nil {
			tb.Fatal(err)
		}
	}
	return files
}

func checkAll(t *testing.T, files map[string][]byte) {
	t.Helper()
	var all map[string][]truth
	if err := json.Unmarshal(files["truth.json"], &all); err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) { checkTables(t, name, files[name], want) })
	}
}

func checkTables(t *testing.T, name string, data []byte, want []truth) {
	t.Helper()
	got, err := list(t, name, data)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d tables, want %d: %+v", len(got), len(want), got)
	}

	for i, table := range want {
		var columns []string
		for _, c := range got[i].Columns {
			columns = append(columns, c.Name)
		}
		if got[i].Name != table.Name || !slices.Equal(columns, table.Columns) {
			t.Errorf("table %q of %q, want %q of %q", got[i].Name, columns, table.Name, table.Columns)
		}
		if n := got[i].Rows; n >= 0 && n != int64(len(table.Rows)) {
			t.Errorf("table %q is said to have %d rows, and has %d", table.Name, n, len(table.Rows))
		}

		var lines bytes.Buffer
		if err := rows(t, name, data, i, got[i].Name, &lines); err != nil {
			t.Fatal(err)
		}
		checkRows(t, &lines, table)
	}
}

func checkRows(t *testing.T, lines *bytes.Buffer, want truth) {
	t.Helper()
	d := json.NewDecoder(lines)
	for n, wanted := range want.Rows {
		var row map[string]any
		if err := d.Decode(&row); err != nil {
			t.Fatalf("row %d of table %q: %v", n, want.Name, err)
		}
		whole := map[string]any{}
		for i, column := range want.Columns {
			whole[column] = wanted[i]
		}
		if !reflect.DeepEqual(row, whole) {
			t.Fatalf("row %d of table %q is\n%v\nwant\n%v", n, want.Name, row, whole)
		}
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Errorf("table %q has more than %d rows (%v)", want.Name, len(want.Rows), err)
	}
}

var options = tablefiles.Options{
	Start:  rustmodule.Start{CacheDir: testcache.Dir()},
	Bounds: rustmodule.Bounds{MaxUnpacked: 1 << 30, MaxRatio: 250},
}

func kindOf(name string) tablefiles.Kind {
	switch filepath.Ext(name) {
	case ".parquet":
		return tablefiles.Parquet
	case ".arrow", ".feather":
		return tablefiles.Arrow
	}
	return tablefiles.Workbook
}

func list(tb testing.TB, name string, data []byte) ([]bigtext.Table, error) {
	tb.Helper()
	if filepath.Ext(name) == ".sqlite" {
		return tablesql.ListDatabase(tb.Context(), bigtext.FromBytes(name, data))
	}
	return tablefiles.List(tb.Context(), options, kindOf(name), section(data))
}

func rows(tb testing.TB, name string, data []byte, number int, table string, out io.Writer) error {
	tb.Helper()
	if filepath.Ext(name) == ".sqlite" {
		return tablesql.WriteRows(tb.Context(), bigtext.FromBytes(name, data), table, out)
	}
	return tablefiles.Rows(tb.Context(), options, kindOf(name), number, section(data), out)
}

func section(data []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
}

// TestCellsKeepTheirValues reads numbers of 16 digits, dates outside the calendar, and formulas
// without a saved value.
func TestCellsKeepTheirValues(t *testing.T) {
	book := documenttruth.Workbook{
		Codes: []string{"yyyy-mm-dd", "[h]:mm:ss"},
		Sheets: []string{`<sheetData>
			<row r="1"><c t="inlineStr"><is><t>n</t></is></c><c t="inlineStr"><is><t>day</t></is></c>
				<c t="inlineStr"><is><t>twice</t></is></c></row>
			<row r="2"><c r="A2"><v>1000000000000001</v></c><c r="B2" s="1"><v>45366</v></c>
				<c r="C2"><f>A2*2</f><v></v></c></row>
			<row r="3"><c r="A3"><v>-4111111111111111</v></c><c r="B3" s="1"><v>-3</v></c>
				<c r="C3" s="1"><f>B2+1</f></c></row>
			<row r="4"><c r="A4"><v>1e+300</v></c><c r="B4" s="1"><v>3000000</v></c>
				<c r="C4"><f>SUM(A2:A3)</f></c></row>
			<row r="5"><c r="A5" s="2"><v>1.2708333333333333</v></c><c r="B5" s="1"><v>2958465</v></c>
				<c r="C5"><f>NOW()</f></c></row>
		</sheetData>`},
	}
	var lines bytes.Buffer
	if err := rows(t, "book.xlsx", book.Bytes(t), 0, "Sheet1", &lines); err != nil {
		t.Fatal(err)
	}
	want := `{"n":1000000000000001,"day":"2024-03-15","twice":2000000000000002}
{"n":-4111111111111111,"day":-3,"twice":"2024-03-16"}
{"n":1e300,"day":3000000,"twice":-3111111111111110}
{"n":"30:30:00","day":"9999-12-31","twice":null}
`
	if lines.String() != want {
		t.Errorf("got\n%s\nwant\n%s", lines.String(), want)
	}
}

// TestDamagedFilesAreErrors cuts and changes files of each kind, and reads them.
func TestDamagedFilesAreErrors(t *testing.T) {
	files := samples(t)
	files["short.xlsb"] = readSample(t, "short.xlsb")
	for _, name := range []string{
		"snappy.parquet", "file-zstd.arrow", "stream-lz4.arrow", "book.xlsx", "book.ods", "book.xls", "short.xlsb",
	} {
		t.Run(name, func(t *testing.T) {
			data := files[name]
			for i := range 12 {
				bad := bytes.Clone(data)
				what := fmt.Sprintf("%s with other bytes at %d/12", name, i)
				if i%3 == 0 {
					bad = bad[:len(bad)*(i+1)/13]
				} else {
					at := len(bad) * i / 12
					copy(bad[at:], bytes.Repeat([]byte{byte(0x11 * i)}, 9))
				}
				useHostile(t, what, kindOf(name), bad)
			}
		})
	}
	for _, kind := range []tablefiles.Kind{tablefiles.Parquet, tablefiles.Arrow, tablefiles.Workbook} {
		for _, data := range []string{
			"", "PAR1", "ARROW1\x00\x00", "\xff\xff\xff\xff\xf0\xff\xff\x7f\x00\x00\x00\x00", "PK\x03\x04",
		} {
			_, err := tablefiles.List(t.Context(), options, kind, section([]byte(data)))
			if !errors.Is(err, tablefiles.ErrUnreadable) {
				t.Errorf("%s of %q: %v", kind, data, err)
			}
		}
	}
}

// useHostile uses a file as a session would. An error must report that the file is unreadable.
func useHostile(t *testing.T, what string, kind tablefiles.Kind, data []byte) {
	t.Helper()
	tables, err := tablefiles.List(t.Context(), options, kind, section(data))
	if err != nil && !errors.Is(err, tablefiles.ErrUnreadable) {
		t.Errorf("%s: %v", what, err)
	}
	for i := range tables {
		err := tablefiles.Rows(t.Context(), options, kind, i, section(data), io.Discard)
		if err != nil && !errors.Is(err, tablefiles.ErrUnreadable) {
			t.Errorf("%s, table %d: %v", what, i, err)
		}
	}
}

func FuzzFiles(f *testing.F) {
	files := samples(f)
	files["short.xlsb"] = readSample(f, "short.xlsb")
	for _, name := range []string{
		"zstd.parquet", "v2.parquet", "stream-None.arrow", "file-lz4.arrow", "book.xlsx", "book.ods", "book.xls",
		"short.xlsb",
	} {
		f.Add(string(kindOf(name)), files[name], uint32(50), byte(200))
	}
	f.Fuzz(func(t *testing.T, kind string, data []byte, at uint32, value byte) {
		if len(data) > 1<<16 {
			return
		}
		if int(at) < len(data) {
			data = bytes.Clone(data)
			data[at] = value
		}
		useHostile(t, "a file", tablefiles.Kind(kind), data)
	})
}
