package sqlitestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/keep/dbfile"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// The tests use these logs.
var (
	runA = store.ID{Kind: store.Run, Name: "a"}
	runB = store.ID{Kind: store.Run, Name: "b"}
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("STORE_OWNER"); dir != "" {
		own(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// own is a process that owns the run a until its stdin ends.
func own(dir string) {
	f, err := Open(dir)
	if err == nil {
		_, err = f.Acquire(context.Background(), runA)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("owned")
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(3) // like a kill: nothing is closed
}

func openTest(t *testing.T, dir string) *Store {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// fill creates a store with a run a, which has one entry with a blob, and closes it.
func fill(t *testing.T) (dir, digest string) {
	t.Helper()
	dir = t.TempDir()
	f := openTest(t, dir)
	id := runA
	if err := f.Create(t.Context(), store.Log{ID: id, Title: "why?"}); err != nil {
		t.Fatal(err)
	}
	lease, err := f.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	e := store.Entry{Turn: 1, Kind: "commit", Data: bytes.Repeat([]byte("data "), 5000), Blob: []byte("the state")}
	if err := f.Append(t.Context(), lease, e); err != nil {
		t.Fatal(err)
	}
	entries, err := f.Entries(t.Context(), id, store.Query{})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, entries[0].Digest
}

func TestASecondProcessLearnsWhoTheOwnerIs(t *testing.T) {
	dir, _ := fill(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_OWNER="+dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said [6]byte
	if _, err := stdout.Read(said[:]); err != nil || string(said[:5]) != "owned" {
		t.Fatalf("%q, %v", said, err)
	}

	f := openTest(t, dir)
	_, err = f.Acquire(t.Context(), runA)
	if want := fmt.Sprintf("process %d on ", cmd.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	owner, err := f.Owner(t.Context(), runA)
	if err != nil || !strings.Contains(owner, fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("the owner is %q, %v", owner, err)
	}
	if _, err := f.Log(t.Context(), runA); err != nil {
		t.Errorf("it cannot be read meanwhile: %v", err)
	}
	if err := f.Create(t.Context(), store.Log{ID: runB}); err != nil {
		t.Errorf("another run cannot begin meanwhile: %v", err)
	}

	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if owner, err := f.Owner(t.Context(), runA); err != nil || owner != "" {
		t.Errorf("after its end, the owner is %q, %v", owner, err)
	}
	if _, err := f.Acquire(t.Context(), runA); err != nil {
		t.Errorf("after the end of the owner: %v", err)
	}
}

func TestAFlippedByteIsFound(t *testing.T) {
	for _, what := range []string{"blob", "database"} {
		t.Run(what, func(t *testing.T) {
			dir, digest := fill(t)
			path := filepath.Join(dir, blobFolder, digest[:2], digest)
			if what == "database" {
				path = filepath.Join(dir, DatabaseName)
			}
			flip(t, path)

			f, err := Open(dir)
			if err == nil {
				defer f.Close()
				_, err = f.Entries(t.Context(), runA, store.Query{})
				if what == "blob" {
					if err != nil {
						t.Fatal(err)
					}
					_, err = f.Blob(t.Context(), digest)
				}
			}
			if !errors.Is(err, store.ErrDamaged) {
				t.Errorf("got %v, want %v", err, store.ErrDamaged)
			}
		})
	}
}

// flip changes a byte in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := len(data) / 2
	if i := bytes.Index(data, []byte("data data")); i >= 0 {
		at = i
	}
	data[at] ^= 0x10
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestATornWriteLosesNothingBeforeIt simulates a machine that lost power and kept only a part of
// the last write.
func TestATornWriteLosesNothingBeforeIt(t *testing.T) {
	dir, _ := fill(t)
	f := openTest(t, dir)
	lease, err := f.Acquire(t.Context(), runA)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := f.Append(t.Context(), lease, store.Entry{Turn: 2, Data: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}

	// The folder torn contains the current files, with the last bytes missing.
	torn := t.TempDir()
	if err := os.CopyFS(torn, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	wal := filepath.Join(torn, DatabaseName+"-wal")
	info, err := os.Stat(wal)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(wal, info.Size()-100); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(torn, DatabaseName+"-shm"))

	g := openTest(t, torn)
	entries, err := g.Entries(t.Context(), runA, store.Query{From: 2})
	if err != nil || len(entries) != 2 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestAFolderThatCannotBeWrittenCanBeRead(t *testing.T) {
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("needs permissions that hold")
	}
	dir, digest := fill(t)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if _, err := Open(dir); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("opening to write: %v", err)
	}
	testReadOnly(t, dir, digest)
}

func TestAStoreCanBeReadOnly(t *testing.T) {
	dir, digest := fill(t)
	testReadOnly(t, dir, digest)
	if _, err := OpenReadOnly(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}

func testReadOnly(t *testing.T, dir, digest string) {
	t.Helper()
	f, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if logs, err := f.Logs(t.Context(), store.Filter{}); err != nil || len(logs) != 1 {
		t.Errorf("%v, %v", logs, err)
	}
	if content, err := f.Blob(t.Context(), digest); err != nil || string(content) != "the state" {
		t.Errorf("%q, %v", content, err)
	}
	if err := f.Create(t.Context(), store.Log{ID: runB}); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Create: %v", err)
	}
	if _, err := f.Acquire(t.Context(), runA); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Acquire: %v", err)
	}
}

// undo contains the statements that revert the migrations from version 1, in order.
var undo = []string{
	"ALTER TABLE logs DROP COLUMN tool_calls; ALTER TABLE entries DROP COLUMN tool_calls",
	"", // checksums: see TestAnOldDatabaseGetsChecksums
}

// TestEveryEarlierVersionOpens checks that folders as created by each earlier version of the
// program can be opened.
func TestEveryEarlierVersionOpens(t *testing.T) {
	if len(undo) != len(migrations)-1 {
		t.Fatalf("%d of %d migrations can be taken back", len(undo), len(migrations)-1)
	}
	for version := 1; version <= len(migrations); version++ {
		dir, digest := fill(t)
		c, err := connect(dbfile.Address(filepath.Join(dir, DatabaseName)))
		if err != nil {
			t.Fatal(err)
		}
		for i := len(undo); i >= version; i-- {
			err = errors.Join(err, c.Exec(undo[i-1]))
		}
		err = errors.Join(err, c.Exec(fmt.Sprintf("PRAGMA user_version = %d", version)), c.close())
		if err != nil {
			t.Fatal(err)
		}

		f := openTest(t, dir)
		if content, err := f.Blob(t.Context(), digest); err != nil || string(content) != "the state" {
			t.Errorf("version %d: %q, %v", version, content, err)
		}
		if entries, err := f.Entries(t.Context(), runA, store.Query{}); err != nil || len(entries) != 1 {
			t.Errorf("version %d: %v, %v", version, entries, err)
		}
	}
}

func TestALaterVersionIsRefused(t *testing.T) {
	dir, _ := fill(t)
	c, err := connect(dbfile.Address(filepath.Join(dir, DatabaseName)))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(c.Exec(fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1)), c.close())
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(string) (*Store, error){Open, OpenReadOnly} {
		if _, err := open(dir); err == nil || !strings.Contains(err.Error(), "use the newer program") {
			t.Error(err)
		}
	}
}

func TestForeignFoldersAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, DatabaseName)
	if err := os.WriteFile(path, []byte(strings.Repeat("a text ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, store.ErrDamaged) {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(data), "a text") {
		t.Errorf("the file was changed: %v", err)
	}
}

// TestAFullDiskLosesNothing bounds the size of the database, to simulate a full disk.
func TestAFullDiskLosesNothing(t *testing.T) {
	dir, _ := fill(t)
	f := openTest(t, dir)
	lease, err := f.Acquire(t.Context(), runA)
	if err != nil {
		t.Fatal(err)
	}
	bound := func(pages int) error {
		return f.write(t.Context(), func(c *conn) error {
			return c.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		})
	}
	if err := bound(1); err != nil { // SQLite raises it to the present size
		t.Fatal(err)
	}
	large := store.Entry{Turn: 2, Data: make([]byte, 1<<20)}
	if err := f.Append(t.Context(), lease, large); err == nil || !strings.Contains(err.Error(), "is full: free some") {
		t.Errorf("got %v", err)
	}
	if err := bound(1 << 30); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(t.Context(), lease, large); err != nil {
		t.Errorf("with free space again: %v", err)
	}
	if entries, err := f.Entries(t.Context(), runA, store.Query{}); err != nil || len(entries) != 2 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// TestAClockThatJumpsBackChangesNothing continues a run in another process, whose clock is a year
// behind.
func TestAClockThatJumpsBackChangesNothing(t *testing.T) {
	dir, _ := fill(t)
	now = func() time.Time { return time.Now().AddDate(-1, 0, 0) }
	t.Cleanup(func() { now = time.Now })

	f, id := openTest(t, dir), runA
	lease, err := f.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	second, third := store.Entry{Turn: 2, Key: "second"}, store.Entry{Turn: 3, Key: "third"}
	if err := errors.Join(f.Append(t.Context(), lease, second), f.Append(t.Context(), lease, third)); err != nil {
		t.Fatal(err)
	}
	last, err := f.Entries(t.Context(), id, store.Query{Last: true})
	if err != nil || len(last) != 1 || last[0].Key != "third" {
		t.Errorf("the last entry is %+v, %v", last, err)
	}

	err = errors.Join(f.Cut(t.Context(), lease, 2), f.Copy(t.Context(), id, 1, store.Log{ID: runB}))
	if err != nil {
		t.Fatal(err)
	}
	if all, err := f.Entries(t.Context(), id, store.Query{}); err != nil || len(all) != 2 || all[1].Key != "second" {
		t.Errorf("after the cut: %+v, %v", all, err)
	}
	if logs, err := f.Logs(t.Context(), store.Filter{Kind: store.Run}); err != nil || len(logs) != 2 {
		t.Errorf("%d runs, %v", len(logs), err)
	}
}

func TestAFailedNoteIsTold(t *testing.T) {
	dir, _ := fill(t)
	f := openTest(t, dir)
	lease, err := f.Acquire(t.Context(), runA)
	if err != nil {
		t.Fatal(err)
	}
	f.Note(lease, store.Entry{Key: strings.Repeat("k", store.MaxKey+1)})
	if err := f.Append(t.Context(), lease, store.Entry{}); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("got %v", err)
	}
	if err := f.Append(t.Context(), lease, store.Entry{}); err != nil {
		t.Errorf("told twice: %v", err)
	}
}

// TestCollectKeepsWhatIsOnItsWay checks that Collect does not delete content whose entry has not
// been written: content is written before the entry that refers to it.
func TestCollectKeepsWhatIsOnItsWay(t *testing.T) {
	dir, _ := fill(t)
	f := openTest(t, dir)
	lease, err := f.Acquire(t.Context(), runA)
	if err != nil {
		t.Fatal(err)
	}
	e := store.Entry{Turn: 2, Blob: []byte("on its way")}
	if err := f.setAside(&e); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Collect(t.Context()); err != nil || got.Blobs != 1 {
		t.Fatal(got, err)
	}
	if err := f.Append(t.Context(), lease, e); err != nil {
		t.Fatal(err)
	}
	if content, err := f.Blob(t.Context(), e.Digest); err != nil || string(content) != "on its way" {
		t.Errorf("%q, %v", content, err)
	}
}

// TestReplaceDeletesAtOnce checks that contents that a session replaced are deleted before the next
// Collect.
func TestReplaceDeletesAtOnce(t *testing.T) {
	dir, digest := fill(t)
	f := openTest(t, dir)
	lease, err := f.Acquire(t.Context(), runA)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Replace(t.Context(), lease, store.Entry{Blob: []byte("the next state")}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.blobPath(digest)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old content: %v", err)
	}
	expectEntriesHave(t, f, "the next state")

	// A failed change deletes nothing.
	lease.Epoch--
	err = f.Replace(t.Context(), lease, store.Entry{Blob: []byte("of a former owner")})
	if !errors.Is(err, store.ErrLost) {
		t.Error(err)
	}
	expectEntriesHave(t, f, "the next state")
}

// expectEntriesHave compares the contents of the run a.
func expectEntriesHave(t *testing.T, f *Store, want ...string) {
	t.Helper()
	entries, err := f.Entries(t.Context(), runA, store.Query{})
	if err != nil || len(entries) != len(want) {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i, e := range entries {
		if content, err := f.Blob(t.Context(), e.Digest); err != nil || string(content) != want[i] {
			t.Errorf("entry %d has %q, %v; want %q", i, content, err, want[i])
		}
	}
}

// FuzzReadBlob checks that reading any file as a blob returns an error or content.
func FuzzReadBlob(f *testing.F) {
	compress, err := encoder()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(compress.EncodeAll([]byte("a state"), nil))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "blob")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		content, err := readBlob(path)
		if err == nil && len(content) > store.MaxBlob {
			t.Errorf("%d bytes", len(content))
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	f, lease := benchStore(b)
	data := bytes.Repeat([]byte("message "), 2000)
	for b.Loop() {
		if err := f.Append(b.Context(), lease, store.Entry{Kind: "commit", Data: data}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendState(b *testing.B) {
	f, lease := benchStore(b)
	state, n := make([]byte, 10<<20), byte(0)
	for b.Loop() {
		n++
		for i := 0; i < len(state); i += 512 {
			state[i] += n
		}
		if err := f.Append(b.Context(), lease, store.Entry{Kind: "commit", Blob: state}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	f, _ := benchStore(b)
	err := f.write(b.Context(), func(c *conn) error {
		for i := range 10_000 {
			err := create(c, store.Log{
				ID: store.ID{Kind: store.Run, Name: fmt.Sprintf("run-%d", i)}, Title: fmt.Sprintf("question %d", i),
				State: store.State{Status: []string{"answered", "failed"}[i%2]}, Created: time.Now(),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		filter := store.Filter{Kind: store.Run, Status: "failed", Text: "question 1", Limit: 100}
		logs, err := f.Logs(b.Context(), filter)
		if err != nil || len(logs) != 100 {
			b.Fatal(len(logs), err)
		}
	}
}

func benchStore(b *testing.B) (*Store, store.Lease) {
	b.Helper()
	f, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	if err := f.Create(b.Context(), store.Log{ID: runA}); err != nil {
		b.Fatal(err)
	}
	lease, err := f.Acquire(b.Context(), runA)
	if err != nil {
		b.Fatal(err)
	}
	return f, lease
}

// TestOnlyAFileIsADatabase puts a folder in the place of a database. SQLite would wait for the
// other end of a pipe, but not every system has pipes.
func TestOnlyAFileIsADatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, DatabaseName), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
		t.Run(name, func(t *testing.T) {
			if f, err := open(dir); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
				t.Errorf("%s: %v, %v", name, f, err)
			}
		})
	}
}
