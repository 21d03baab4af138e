package inputs_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// tableSamples returns small files that contain tables.
func tableSamples(t *testing.T) map[string][]byte {
	t.Helper()
	return unzip(t, "../internal/data/tablefiles/testdata/tables.zip")
}

// unzip returns the files of an archive, by name.
func unzip(t *testing.T, path string) map[string][]byte {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()

	all := map[string][]byte{}
	for _, f := range r.File {
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if all[f.Name], err = io.ReadAll(content); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestFilesAreTables(t *testing.T) {
	all := tableSamples(t)
	short, err := os.ReadFile("../internal/data/tablefiles/testdata/short.xlsb")
	if err != nil {
		t.Fatal(err)
	}
	const columns = "id int64, small int8, large uint64"
	for name, c := range map[string]struct {
		data   []byte
		kind   bigtext.Kind
		tables []string
		begins string
		note   string
	}{
		"a.parquet": {
			all["zstd.parquet"], "parquet",
			[]string{""},
			`{"id":0,`,
			"it is a table of 20 rows, whose columns are " + columns,
		},
		"a":             {all["snappy.parquet"], "parquet", []string{""}, `{"id":0,`, columns},
		"a.parquet.gz":  {packed(t, "gzip", all["none.parquet"]), "parquet", []string{""}, `{"id":0,`, columns},
		"empty.parquet": {all["empty.parquet"], "parquet", []string{""}, "", "it is a table of 0 rows"},
		"a.feather": {
			all["v2.feather"], "arrow", []string{""}, `{"id":0,`, "it is a table, whose columns are " + columns,
		},
		"a.arrow": {all["file-lz4.arrow"], "arrow", []string{""}, `{"id":0,`, columns},
		"stream":  {all["stream-zstd.arrow"], "arrow", []string{""}, `{"id":0,`, columns},
		"book.xlsx": {
			all["book.xlsx"], "xlsx",
			[]string{"Sales", "Köpfe & mehr"},
			`{"item":"Grüße",`,
			`table "Sales", whose columns are item, price, sold`,
		},
		"book.ods": {
			all["book.ods"], "ods", []string{"Sales", "Köpfe & mehr"}, `{"item":"Grüße",`, `table "Köpfe & mehr"`,
		},
		"short.xlsb": {
			short, "xlsb",
			[]string{"Sales", "Köpfe & more", "Odd"},
			`{"name":"Grüße 0 漢字","count":0,`,
			"converted from xlsb to Markdown: 3 sheets",
		},
		"export.xls": {
			[]byte(`<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"
 xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet"><Worksheet ss:Name="Stock"><Table>
<Row><Cell><Data ss:Type="String">id</Data></Cell><Cell><Data ss:Type="String">day</Data></Cell></Row>
<Row><Cell><Data ss:Type="Number">12345678901234567</Data></Cell>
<Cell><Data ss:Type="DateTime">2024-03-15T00:00:00.000</Data></Cell></Row></Table></Worksheet></Workbook>`),
			"spreadsheetml",
			[]string{"Stock"},
			`{"id":12345678901234567,"day":"2024-03-15"}`,
			"converted from spreadsheetml to Markdown: 1 sheet",
		},
		"book.xls": {all["book.xls"], "xls", []string{"Sales", "Köpfe & mehr"}, `{"item":"Grüße",`, "item_2"},
		"shop.db": {
			all["shop.sqlite"], "sqlite",
			[]string{"orders", "two words", "cheap"},
			`{"id":1,`,
			`table "orders", whose columns are id INTEGER, name TEXT`,
		},
		"damaged.parquet": {all["none.parquet"][:4000], "parquet", nil, "", "its tables cannot be read: "},
		"damaged.db": {
			append([]byte("SQLite format 3\x00"), make([]byte, 4096)...), "sqlite", nil, "", "cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, inputs.Options{}, name, c.data)
			if err != nil {
				t.Fatal(err)
			}
			text := in.Text.(*bigtext.Text)
			if notes := strings.Join(in.Notes, "\n"); text.Kind() != c.kind || !strings.Contains(notes, c.note) {
				t.Errorf("%s: %s", text.Kind(), notes)
			}
			if got := tableNames(text); !slices.Equal(got, c.tables) {
				t.Fatalf("%q, want %q", got, c.tables)
			}
			if c.tables != nil {
				checkBeginning(t, text, c.begins)
			}
		})
	}
}

func tableNames(text *bigtext.Text) (names []string) {
	for _, table := range text.Tables() {
		names = append(names, table.Name)
	}
	return names
}

// checkBeginning compares the beginning of the first table's rows with want.
func checkBeginning(t *testing.T, text *bigtext.Text, want string) {
	t.Helper()
	rows, err := text.Table(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := rows.Raw(0, rows.Size())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(got, []byte(want)) || want == "" && len(got) > 0 || rows.Kind() != bigtext.KindJSONL {
		t.Errorf("the rows begin %.100q, want %q", got, want)
	}
}

// makeDatabase writes a SQLite database and returns its bytes.
func makeDatabase(t *testing.T, path string) []byte {
	t.Helper()
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Exec(`CREATE TABLE orders(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO orders VALUES(1, 'Köln');
		CREATE TABLE "two words"(a); CREATE VIEW few AS SELECT id FROM orders;`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTheLogOfADatabaseIsNamed checks the note about a database with an unmerged log next to it.
func TestTheLogOfADatabaseIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	makeDatabase(t, path)
	if err := os.WriteFile(path+"-wal", []byte("pages"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := inputs.Open(t.Context(), inputs.Options{}, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() }) // the test is over
	if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, "what is only in shop.db-wal is not seen") {
		t.Error(notes)
	}
}

func TestAFolderHasTables(t *testing.T) {
	all, dir := tableSamples(t), t.TempDir()
	for _, name := range []string{"v2.parquet", "book.xlsx", "shop.sqlite"} {
		if err := os.WriteFile(filepath.Join(dir, name), all[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, err := inputs.Open(t.Context(), inputs.Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() }) // the test is over

	notes := strings.Join(in.Notes, "\n")
	for _, note := range []string{"tables in parquet, whose rows are in .table(): v2.parquet", "tables in sqlite"} {
		if !strings.Contains(notes, note) {
			t.Errorf("%s: no %q", notes, note)
		}
	}
	for name, tables := range map[string]int{"v2.parquet": 1, "book.xlsx": 2, "shop.sqlite": 3} {
		t.Run(name, func(t *testing.T) {
			text, err := in.Dir.(*bigtext.Dir).Text(t.Context(), name)
			if err != nil || len(text.Tables()) != tables {
				t.Errorf("%s: %v, %v", name, text.Tables(), err)
			}
		})
	}
}

// TestRowsOfAListAreBounded checks the bounds on a row, and on the space between rows, in a list of
// objects.
func TestRowsOfAListAreBounded(t *testing.T) {
	skip.UnderRace(t)
	fill := strings.Repeat("x", 40<<20)
	for name, c := range map[string]struct {
		data   string
		tables int
		told   string
	}{
		"rows":      {`[{"a": 1}, {"b": "x"}]`, 1, "it is a table"},
		"long row":  {`[{"a": 1}, {"a": "` + fill + `"}]`, 0, "a row has more than 8388608 bytes"},
		"long gap":  {`[{"a": 1},` + strings.ReplaceAll(fill, "x", " ") + `{"a": 2}]`, 0, "a row has more than"},
		"cut":       {`[{"a": 1}, {"a": `, 0, "unexpected"},
		"other one": {`[{"a": 1}, 2]`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, inputs.Options{}, "a.json", []byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			text, _ := in.Text.(*bigtext.Text)
			notes := strings.Join(in.Notes, "; ")
			if len(text.Tables()) != c.tables || !strings.Contains(notes, c.told) {
				t.Errorf("%d tables; notes: %s", len(text.Tables()), notes)
			}
		})
	}
}

// TestTablesAreBounded checks the bounds for a small file that expands to very many rows.
func TestTablesAreBounded(t *testing.T) {
	in, err := read(t, inputs.Options{MaxUnpacked: 1000}, "a.parquet", tableSamples(t)["zstd.parquet"])
	if err != nil {
		t.Fatal(err)
	}
	text := in.Text.(*bigtext.Text)
	if _, err := text.Table(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "--max-unpacked") {
		t.Errorf("%v", err)
	}
}
