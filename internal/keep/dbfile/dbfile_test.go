package dbfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

const testTables = `
CREATE TABLE IF NOT EXISTS things (id TEXT PRIMARY KEY, size INTEGER NOT NULL, body TEXT NOT NULL, extra BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS things_by_size ON things (size);
CREATE TABLE IF NOT EXISTS steps (seq INTEGER PRIMARY KEY AUTOINCREMENT, thing TEXT NOT NULL, cost REAL NOT NULL,
	data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS steps_by_thing ON steps (thing, seq);`

func openTest(tb testing.TB, path string) *sqlite3.Conn {
	tb.Helper()
	c, err := sqlite3.OpenFlags(Address(path), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err == nil {
		err = c.Exec("PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
	}
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// makeTest creates a database. It calls copied while the database is open, in the state that a
// killed process leaves.
func makeTest(tb testing.TB, copied func(dir string)) (path string) {
	tb.Helper()
	dir := tb.TempDir()
	path = filepath.Join(dir, "test.db")
	if err := Create(path); err != nil {
		tb.Fatal(err)
	}
	c := openTest(tb, path)
	random := rand.New(rand.NewPCG(1, 2))
	exec := func(format string, args ...any) {
		tb.Helper()
		if err := c.Exec(fmt.Sprintf(format, args...)); err != nil {
			tb.Fatal(err)
		}
	}
	exec(testTables)
	for i := range 300 {
		size := random.IntN(200)
		if i%20 == 0 {
			size = 3_000 + random.IntN(20_000)
		}
		exec("INSERT INTO things VALUES ('thing-%03d', %d, '%s', zeroblob(%d))", i, size,
			strings.Repeat(string(rune('a'+i%26)), size), size/3)
		for n := range i % 3 {
			exec("INSERT INTO steps (thing, cost, data) VALUES ('thing-%03d', %d.5, randomblob(%d))", i, n, size)
		}
		if i%7 == 0 {
			exec("DELETE FROM things WHERE id = 'thing-%03d'", i/2)
			exec("UPDATE things SET size = -1, body = 'changed' WHERE id = 'thing-%03d'", i-3)
		}
		if i == 250 {
			exec("PRAGMA wal_checkpoint(PASSIVE)")
		}
	}
	copied(dir)
	if err := c.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// readAll returns all rows of a database, by table and key.
func readAll(c *sqlite3.Conn) (map[string]string, error) {
	rows := map[string]string{}
	err := rowsOf(c, "SELECT id, size, body, hex(extra) FROM things ORDER BY id", func(r *sqlite3.Stmt) {
		rows["things "+r.ColumnText(0)] = fmt.Sprint(r.ColumnInt(1), r.ColumnText(2), r.ColumnText(3))
	})
	return rows, firstOf(err, rowsOf(c, "SELECT seq, thing, cost, hex(data) FROM steps", func(r *sqlite3.Stmt) {
		rows["steps "+r.ColumnText(1)+" "+r.ColumnText(0)] = fmt.Sprint(r.ColumnFloat(2), r.ColumnText(3))
	}))
}

// harm changes a file in one of four ways, and describes the change.
func harm(tb testing.TB, random *rand.Rand, path string) string {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	at := random.IntN(max(len(data), 1))
	how := fmt.Sprintf("%s at %d (page %d)", filepath.Base(path), at, at/pageSize+1)
	switch kind := random.IntN(4); {
	case kind == 0 && len(data) > 0:
		data[at] ^= 1 << random.IntN(8)
		how = "flip in " + how
	case kind == 1:
		data = data[:at]
		how = "cut of " + how
	case kind == 2 && len(data) > 0:
		clear(data[at:min(at+1<<(3+random.IntN(11)), len(data))])
		how = "zeros in " + how
	default:
		if err := os.Remove(path); err != nil {
			tb.Fatal(err)
		}
		return "no " + filepath.Base(path)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return how
}

func copyFolder(tb testing.TB, from string) (to string) {
	tb.Helper()
	to = tb.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		tb.Fatal(err)
	}
	return to
}

// TestDamageIsFoundAndTheRestIsSaved damages a closed database, and one left by a killed process.
// No row that is read may be wrong, and after the salvage each row must be right or reported as
// lost.
func TestDamageIsFoundAndTheRestIsSaved(t *testing.T) {
	skip.UnderRace(t)
	var killed string
	closed := filepath.Dir(makeTest(t, func(dir string) { killed = copyFolder(t, dir) }))
	truth := map[string]string{}
	for _, dir := range []string{closed, killed} {
		c := openTest(t, filepath.Join(copyFolder(t, dir), "test.db"))
		rows, err := readAll(c)
		if err := errors.Join(err, c.Close()); err != nil || len(rows) < 400 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if len(truth) > 0 && !maps.Equal(truth, rows) {
			t.Fatal("the killed process has left other rows")
		}
		truth = rows
	}

	tries := 150
	if testing.Short() {
		tries = 40
	}
	saved, lost := 0, 0
	for i := range tries {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		dir := closed
		if i%2 == 1 {
			dir = killed
		}
		dir = copyFolder(t, dir)
		path := filepath.Join(dir, "test.db")
		names := slices.DeleteFunc(Files(path), func(name string) bool { return !IsThere(name) })
		how := harm(t, random, names[random.IntN(len(names))])

		isKnown := Verify(path) != nil
		if !isKnown && !IsThere(path) {
			continue // the owner of the database detects that it is missing
		}
		if !isKnown {
			c := openTest(t, path)
			rows, err := readAll(c)
			_ = c.Close()
			if len(truth) != len(rows) && err == nil && IsThere(path) {
				t.Errorf("%d: %s: SQLite reads %d of %d rows without an error", i, how, len(rows), len(truth))
			}
			checkRows(t, i, how, rows, truth)
			continue
		}
		s, l := trySalvage(t, i, how, path, truth)
		saved, lost = saved+s, lost+l
	}
	t.Logf("%d rows saved, %d lost", saved, lost)
}

func checkRows(t *testing.T, i int, how string, rows, truth map[string]string) {
	t.Helper()
	for key, value := range rows {
		if truth[key] != value {
			t.Errorf("%d: %s: %s is %.60q, not %.60q", i, how, key, value, truth[key])
		}
	}
}

func trySalvage(t *testing.T, i int, how, path string, truth map[string]string) (saved, lost int) {
	t.Helper()
	fresh := path + ".new"
	if err := Create(fresh); err != nil {
		t.Fatal(err)
	}
	into := openTest(t, fresh)
	if err := into.Exec(testTables); err != nil {
		t.Fatal(err)
	}
	found, err := Salvage(path, into)
	if err != nil {
		t.Fatalf("%d: %s: %v", i, how, err)
	}
	rows, err := readAll(into)
	if err := errors.Join(err, into.Close()); err != nil {
		t.Fatalf("%d: %s: %v", i, how, err)
	}

	key := func(l LostRow) string {
		if l.Table == "steps" {
			return fmt.Sprintf("steps %v %v", l.Values["thing"], l.Values["seq"])
		}
		return fmt.Sprintf("%s %v", l.Table, l.Values["id"])
	}
	if !found.IsAnyOld {
		current := maps.Clone(rows)
		for _, old := range found.Old {
			delete(current, key(old))
		}
		checkRows(t, i, how, current, truth)
	}
	named := map[string]bool{}
	for _, l := range found.Lost {
		key := key(l)
		if rows[key] != "" && !found.IsAnyOld {
			t.Errorf("%d: %s: %s is saved, and lost", i, how, key)
		}
		named[key] = true
	}
	for key := range truth {
		if rows[key] == "" && !named[key] && !found.AreMoreLost && !found.IsAnyOld && !found.IsMissing {
			t.Errorf("%d: %s: %s is lost, and nothing says so: %s", i, how, key, found)
		}
	}
	if found.IsWhole() && len(rows) != len(truth) {
		t.Errorf("%d: %s: it is whole, with %d of %d rows", i, how, len(rows), len(truth))
	}
	if testing.Verbose() {
		t.Logf("%d: %s: %s: %d rows, %d old, %d lost, more %v", i, how, found, len(rows),
			len(found.Old), len(found.Lost), found.AreMoreLost)
	}
	return len(rows), len(named)
}

// TestZerosAreDamage checks that a page of zeros is damage: SQLite's own checksum of such a page is
// zero.
func TestZerosAreDamage(t *testing.T) {
	path := makeTest(t, func(string) {})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, make([]byte, usable-4)) // an overflow page
	if at < 0 {
		t.Fatal("no page has only zeros")
	}
	at = at / pageSize * pageSize
	clear(data[at : at+pageSize])
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := openTest(t, path)
	defer c.Close()
	if _, err := readAll(c); !IsDamage(err) {
		t.Errorf("a page of zeros is read: %v", err)
	}
}
