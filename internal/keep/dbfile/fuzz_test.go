package dbfile

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzScan checks that a scan ends, whatever the files of a database contain.
func FuzzScan(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "test.db")
	if err := Create(path); err != nil {
		f.Fatal(err)
	}
	c := openTest(f, path)
	err := c.Exec(testTables + `
		INSERT INTO things VALUES ('a', 1, 'body', x'00'), ('b', 2, printf('%.5000c', 'x'), x'');
		INSERT INTO steps (thing, cost, data) VALUES ('a', 1.5, x'01'); PRAGMA wal_checkpoint;
		UPDATE things SET size = 3`)
	if err != nil {
		f.Fatal(err)
	}
	var files [3][]byte
	for i, name := range Files(path) {
		if files[i], err = os.ReadFile(name); err != nil {
			f.Fatal(err)
		}
	}
	files[2] = files[2][:listAt+64]
	f.Add(files[0], files[1], files[2])
	tables, err := readSchema(c)
	if err := firstOf(err, c.Close()); err != nil {
		f.Fatal(err)
	}

	f.Fuzz(func(t *testing.T, file, log, index []byte) {
		path := filepath.Join(t.TempDir(), "test.db")
		for i, data := range [][]byte{file, log, index} {
			if len(data) > 100*pageSize {
				return
			}
			if err := os.WriteFile(Files(path)[i], data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := newScan(tables)
		if err := s.open(path); err != nil {
			t.Fatal(err)
		}
		defer s.pages.close()
		if _, err := s.find(func(*table, cell) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := Verify(path); err != nil && !IsDamage(err) {
			t.Fatal(err)
		}
	})
}

// FuzzRecord checks that a row is refused, or has at most as many bytes as its record.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{4, 1, 8, 15, 7, 'a'}, false)
	f.Add([]byte{3, 15, 12, 'a'}, true)
	f.Fuzz(func(t *testing.T, data []byte, isCut bool) {
		values, err := decodeRecord(data, isCut)
		size := 0
		for _, v := range values {
			switch v := v.(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
		}
		if err == nil && (size > len(data) || len(values) > maxColumns) {
			t.Errorf("%d values of %d bytes", len(values), size)
		}
	})
}
