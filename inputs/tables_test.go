package inputs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/bigtext"
)

// makeDatabase writes a database of SQLite, and returns its bytes.
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

func TestFilesAreTables(t *testing.T) {
	shop := makeDatabase(t, filepath.Join(t.TempDir(), "shop.db"))
	for name, c := range map[string]struct {
		data   []byte
		kind   bigtext.Kind
		tables []string
		begins string
		note   string
	}{
		"shop.db": {
			shop, "sqlite",
			[]string{"orders", "two words", "few"},
			`{"id":1,"name":"Köln"}`,
			`table "orders", whose columns are id INTEGER, name TEXT`,
		},
		"a.gz": {
			packed(t, "gzip", shop), "sqlite", []string{"orders", "two words", "few"}, `{"id":1,`, "two words",
		},
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

// checkBeginning compares the beginning of the first table's rows.
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

// TestTheLogOfADatabaseIsNamed opens a database beside which lies what is not in it.
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
	t.Cleanup(func() { _ = inputs.Close(in) }) // the test is over
	if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, "what is only in shop.db-wal is not seen") {
		t.Error(notes)
	}
}

func TestAFolderHasTables(t *testing.T) {
	dir := t.TempDir()
	makeDatabase(t, filepath.Join(dir, "shop.db"))
	in, err := inputs.Open(t.Context(), inputs.Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inputs.Close(in) }) // the test is over

	const note = "tables in sqlite, whose rows are in .table(): shop.db"
	if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, note) {
		t.Error(notes)
	}
	text, err := in.Dir.(*bigtext.Dir).Text(t.Context(), "shop.db")
	if err != nil || len(text.Tables()) != 3 {
		t.Errorf("%v, %v", text.Tables(), err)
	}
}

// TestTablesAreBounded reads rows that are too long.
func TestTablesAreBounded(t *testing.T) {
	shop := makeDatabase(t, filepath.Join(t.TempDir(), "shop.db"))
	in, err := read(t, inputs.Options{MaxUnpacked: 10}, "shop.db", shop)
	if err != nil {
		t.Fatal(err)
	}
	text := in.Text.(*bigtext.Text)
	if _, err := text.Table(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "--max-unpacked") {
		t.Errorf("%v", err)
	}
}
