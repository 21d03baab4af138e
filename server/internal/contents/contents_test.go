package contents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/server/internal/records"
)

// kept is a folder of contents for a test.
type kept struct {
	*testing.T
	*Contents
}

func openTest(t *testing.T, dir string) *kept {
	t.Helper()
	db, err := records.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c, err := Open(t.Context(), db, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return &kept{t, c}
}

func (k *kept) write(path, text string) *Incoming {
	k.Helper()
	d, err := k.Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	if err != nil {
		k.Fatal(err)
	}
	return d
}

func noWork(*sql.Tx) error { return nil }

func (k *kept) keep(path, text string) {
	k.Helper()
	if err := k.Keep(k.Context(), []*Incoming{k.write(path, text)}, noWork); err != nil {
		k.Fatal(err)
	}
}

// text returns the text of a content.
func (k *kept) text(path string) (string, error) {
	content, err := k.Read(k.Context(), path)
	if err != nil {
		return "", err
	}
	defer content.Close()
	data, err := io.ReadAll(content)
	return string(data), err
}

// wants fails the test unless a content has the given text or, if text is empty, does not exist.
func (k *kept) wants(path, text string) {
	k.Helper()
	got, err := k.text(path)
	var damaged *DamageError
	if text == "" {
		if !errors.As(err, &damaged) || damaged.IsThere() {
			k.Errorf("%s has %q, %v", path, got, err)
		}
		return
	}
	if err != nil || got != text {
		k.Errorf("%s has %q, %v; want %q", path, got, err, text)
	}
}

// ways lists the contents in transit, in either direction.
func (k *kept) ways() (all []string) {
	for _, folder := range []string{incomingFolder, outgoingFolder} {
		found, err := filepath.Glob(filepath.Join(k.dir, folder, "*"))
		if err != nil {
			k.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// TestCommittedContentsAreNotOverwritten checks a committed content that cannot be moved to its
// place while a new version is written.
func TestCommittedContentsAreNotOverwritten(t *testing.T) {
	k := openTest(t, t.TempDir())
	blocked := filepath.Join(k.dir, "sessions")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.keep("sessions/a/state", "one")
	k.wants("sessions/a/state", "one")
	fails := func(io.Writer) error { return errors.New("the disk is full") }
	if _, err := k.Write("sessions/a/state", fails); err == nil {
		t.Error("it was written again")
	}
	k.wants("sessions/a/state", "one")

	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write("sessions/a/state", fails); err == nil {
		t.Error("a write that fails has no error")
	}
	k.wants("sessions/a/state", "one")
	k.keep("sessions/a/state", "two")
	k.wants("sessions/a/state", "two")
}

func TestAContentCountsWithItsRows(t *testing.T) {
	k := openTest(t, t.TempDir())
	k.keep("sessions/a/state", "one")
	k.wants("sessions/a/state", "one")
	d := k.write("sessions/a/state", "two")
	failed := errors.New("no")
	if err := k.Keep(t.Context(), []*Incoming{d}, func(*sql.Tx) error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	k.wants("sessions/a/state", "one")

	k.keep("sessions/a/state", "three")
	copied, err := k.Copy(t.Context(), "sessions/a/state", "runs/b/contexts/0")
	if err == nil {
		err = k.Keep(t.Context(), []*Incoming{copied}, noWork)
	}
	if err == nil {
		err = k.Remove(t.Context(), "sessions/a", noWork)
	}
	if err != nil {
		t.Fatal(err)
	}
	k.wants("sessions/a/state", "")
	k.wants("runs/b/contexts/0", "three")
	if err := k.Remove(t.Context(), "runs/b", func(*sql.Tx) error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	k.wants("runs/b/contexts/0", "three")
	if left := k.ways(); len(left) > 0 {
		t.Errorf("on their way are %v", left)
	}
}

// TestAKillLeavesOneOfBoth stops between the steps of Keep and Remove, reopens the folder, and
// checks that each content has either its old or its new state.
func TestAKillLeavesOneOfBoth(t *testing.T) {
	dir := t.TempDir()
	k := openTest(t, dir)
	k.keep("files/a", "the first")
	k.keep("files/b", "the second")
	k.write("files/a", "not kept")   // killed before the rows were written
	k.write("files/new", "not kept") //
	d := k.write("files/b", "kept")  // killed after the rows were written, before the move
	addRow := func(tx *sql.Tx) error {
		return records.AddContent(t.Context(), tx, d.Path, d.Digest, d.Bytes)
	}
	if err := records.Within(t.Context(), k.db, addRow); err != nil {
		t.Fatal(err)
	}
	k.keep("files/c", "the third")
	k.keep("files/d", "the fourth")
	for _, name := range []string{"files/c", "files/d"} { // only one has lost its row
		if err := os.Rename(k.file(name), k.way(outgoingFolder, name)); err != nil {
			t.Fatal(err)
		}
	}
	err := records.Within(t.Context(), k.db, func(tx *sql.Tx) error {
		return records.RemoveContents(t.Context(), tx, "files/d")
	})
	if err != nil {
		t.Fatal(err)
	}

	k = openTest(t, dir)
	for path, text := range map[string]string{
		"files/a": "the first", "files/new": "", "files/b": "kept", "files/c": "the third", "files/d": "",
	} {
		k.wants(path, text)
	}
	if left := k.ways(); len(left) > 0 {
		t.Errorf("on their way are %v", left)
	}
}

// TestDamageIsFoundAtTheLastByte also checks that contents of an earlier version receive a digest
// when they are read.
func TestDamageIsFoundAtTheLastByte(t *testing.T) {
	dir := t.TempDir()
	k := openTest(t, dir)
	text := strings.Repeat("a text ", 20_000)
	k.keep("files/a", text)
	if file, err := k.File(t.Context(), "files/a"); err != nil {
		t.Error(err)
	} else {
		_ = file.Close()
	}
	old := filepath.Join(dir, "files", "old")
	addRow := func(tx *sql.Tx) error { return records.AddContent(t.Context(), tx, "files/old", []byte{}, 3) }
	err := errors.Join(os.WriteFile(old, []byte("old"), 0o600), records.Within(t.Context(), k.db, addRow))
	if err != nil {
		t.Fatal(err)
	}
	k.wants("files/old", "old")

	for name, change := range map[string]func([]byte) []byte{
		"flipped": func(d []byte) []byte { d[len(d)-1] ^= 1; return d },
		"cut":     func(d []byte) []byte { return d[:len(d)-1] },
		"longer":  func(d []byte) []byte { return append(d, 0) },
		"zeros":   func(d []byte) []byte { clear(d[:100]); return d },
	} {
		t.Run(name, func(t *testing.T) {
			for path, has := range map[string]string{"files/a": text, "files/old": "old"} {
				if name == "zeros" && path == "files/old" {
					continue
				}
				if err := os.WriteFile(k.file(path), change([]byte(has)), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := k.text(path); !errors.Is(err, damage.Err) {
					t.Errorf("%s, %s: %v", path, name, err)
				}
				if _, err := k.File(t.Context(), path); !errors.Is(err, damage.Err) {
					t.Errorf("the file of %s, %s: %v", path, name, err)
				}
			}
		})
	}
	if _, err := k.Copy(t.Context(), "files/none", "runs/a/contexts/0"); !errors.Is(err, damage.Err) {
		t.Errorf("a copy of nothing: %v", err)
	}
}

// TestAFileWithoutARowIsNotDeleted checks that such a file is kept, because its row may have been
// lost.
func TestAFileWithoutARowIsNotDeleted(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir)
	path := filepath.Join(dir, "sessions", "sess_a", "state")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	k := openTest(t, dir)
	report, err := k.Check(t.Context(), true, nil)
	if err != nil || report.Count() != 1 || !strings.Contains(report.Findings[0].String(), "its record is missing") {
		t.Errorf("the check finds %+v, %v", report, err)
	}
	q := damage.NewQuarantine(dir)
	if _, err := k.Check(t.Context(), true, q); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(q.Dir(), "sessions", "sess_a", "state"))
	if err != nil || string(data) != "x" {
		t.Errorf("the quarantine has %q, %v", data, err)
	}
	if isLost, err := records.IsLost(context.Background(), k.db, "sess_a"); err != nil || !isLost {
		t.Errorf("the session is lost: %t, %v", isLost, err)
	}
	if report, err = k.Check(t.Context(), true, nil); err != nil || !report.IsWhole() {
		t.Errorf("after the repair: %+v, %v", report, err)
	}
}

// BenchmarkKeep measures Keep with a content of a megabyte.
func BenchmarkKeep(b *testing.B) {
	dir := b.TempDir()
	db, err := records.Open(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	c, err := Open(b.Context(), db, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 1<<20)
	for n := 0; b.Loop(); n++ {
		d, err := c.Write(fmt.Sprint("files/", n%10), func(w io.Writer) error { _, err := w.Write(data); return err })
		if err == nil {
			err = c.Keep(b.Context(), []*Incoming{d}, noWork)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
