package sqlitestore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/keep/dbfile"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// fillMore creates a store with some runs and sessions. It calls copied while the store is open.
func fillMore(t *testing.T, copied func(dir string)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f := openTest(t, dir)
	for i := range 6 {
		id := store.ID{Kind: store.Run, Name: fmt.Sprintf("run-%d", i)}
		if i%3 == 2 {
			id = store.ID{Kind: store.Session, Name: fmt.Sprintf("session-%d", i)}
		}
		if err := f.Create(t.Context(), store.Log{ID: id, Title: strings.Repeat("why? ", i)}); err != nil {
			t.Fatal(err)
		}
		lease, err := f.Acquire(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for turn := range 5 {
			e := store.Entry{
				Turn: turn, Kind: "step", Key: fmt.Sprint(turn), Data: []byte(strings.Repeat(id.Name, 30*turn*turn)),
				Cost: store.Cost{Calls: 1, USD: 0.5},
			}
			if turn%2 == 1 {
				e.Kind, e.Blob = "commit", bytes.Repeat([]byte(id.Name), 100+turn)
			}
			if err := f.Append(t.Context(), lease, e); err != nil {
				t.Fatal(err)
			}
		}
		err = f.SetState(t.Context(), lease, store.State{Status: "answered", Turn: 4})
		if err := errors.Join(err, f.Release(lease)); err != nil {
			t.Fatal(err)
		}
	}
	copied(dir)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// contentOf returns the whole content of a store, by name, and the names of everything that the
// store refuses as damaged.
func contentOf(t *testing.T, dir string) (has map[string]string, refused []string, err error) {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	logs, err := f.Logs(t.Context(), store.Filter{})
	if err != nil {
		return nil, nil, err
	}
	has = map[string]string{}
	for _, log := range logs {
		has[log.String()] = fmt.Sprint(log.Title, log.Status, log.Turn, log.Spent)
		entries, err := f.Entries(t.Context(), log.ID, store.Query{})
		if errors.Is(err, store.ErrDamaged) {
			refused = append(refused, log.String())
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := fmt.Sprintf("%s entry %d", log.ID, e.Turn)
			has[name] = string(e.Data)
			if e.Digest == "" {
				continue
			}
			content, err := f.Blob(t.Context(), e.Digest)
			if errors.Is(err, store.ErrDamaged) {
				refused = append(refused, name)
			} else if err != nil {
				t.Fatal(err)
			}
			has[name] += string(content)
		}
	}
	return has, refused, nil
}

// harm changes a file in one of four ways, and describes the change.
func harm(t *testing.T, random *rand.Rand, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	how, at := "no", random.IntN(max(len(data), 1))
	switch kind := random.IntN(4); {
	case kind == 0 && len(data) > 0:
		data[at] ^= 1 << random.IntN(8)
		how = fmt.Sprintf("a flip at %d of", at)
	case kind == 1:
		data = data[:at]
		how = fmt.Sprintf("a cut at %d of", at)
	case kind == 2 && len(data) > 0:
		clear(data[at:min(at+1<<(3+random.IntN(11)), len(data))])
		how = fmt.Sprintf("zeros at %d of", at)
	}
	if err = os.Remove(path); err == nil && how != "no" {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return how + " " + filepath.Base(path)
}

func filesOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	for _, pattern := range []string{"store.db", "store.db-wal", "store.db-shm", "blobs/*/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// TestDamageOfAStoreIsFoundAndRepaired damages a file of a store. Before the repair, nothing that
// is read may be wrong. After the repair, everything missing must have been reported.
func TestDamageOfAStoreIsFoundAndRepaired(t *testing.T) {
	skip.UnderRace(t)
	killed := t.TempDir()
	closed := fillMore(t, func(dir string) {
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	})
	truth, refused, err := contentOf(t, closed)
	if err != nil || len(refused) > 0 || len(truth) != 36 {
		t.Fatal(len(truth), refused, err)
	}

	tries := 100
	if testing.Short() {
		tries = 24
	}
	for i := range tries {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS([]string{closed, killed}[i%2])); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(uint64(i), 3))
		files := filesOf(t, dir)
		how := fmt.Sprintf("%d: %s", i, harm(t, random, files[random.IntN(len(files))]))

		found, err := Check(t.Context(), dir, nil)
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		has, refused, err := contentOf(t, dir)
		if (err != nil || len(refused) > 0 || len(has) < len(truth)) && found.IsWhole() {
			t.Errorf("%s: the check finds nothing, but %d of %d are there, %v are refused: %v",
				how, len(has), len(truth), refused, err)
		}
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v", how, err)
		}
		expectTruth(t, how, has, truth, refused)

		q := damage.NewQuarantine(dir)
		repaired, err := Check(t.Context(), dir, q)
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		has, refused, err = contentOf(t, dir)
		if err != nil || len(refused) > 0 {
			t.Errorf("%s: after the repair %v are refused: %v", how, refused, err)
		}
		var told strings.Builder
		for _, f := range repaired.Findings {
			told.WriteString(f.String() + "\n")
		}
		expectTold(t, how, has, truth, told.String())
		if again, err := Check(t.Context(), dir, nil); err != nil || !again.IsWhole() {
			t.Errorf("%s: after the repair the check finds %v, %v", how, again, err)
		}
		if !repaired.IsWhole() && q.Dir() == "" {
			t.Errorf("%s: nothing is in the quarantine: %s", how, told.String())
		}
	}
}

// expectTruth requires that everything present is right, apart from what was refused.
func expectTruth(t *testing.T, how string, has, truth map[string]string, refused []string) {
	t.Helper()
	for name, value := range has {
		if truth[name] != value && !slices.Contains(refused, name) {
			t.Errorf("%s: %s is %.60q, not %.60q", how, name, value, truth[name])
		}
	}
}

// expectTold requires that everything that is not right was reported.
func expectTold(t *testing.T, how string, has, truth map[string]string, told string) {
	t.Helper()
	isOld := strings.Contains(told, "may be older")
	for name, want := range truth {
		got, isThere := has[name]
		if isThere && got == want {
			continue
		}
		id, _, isEntry := strings.Cut(name, " entry ")
		log, _ := strings.CutPrefix(strings.TrimPrefix(id, "run "), "session ")
		isTold := strings.Contains(told, log) || isEntry && strings.Contains(told, "entries: ") ||
			strings.Contains(told, "further rows") || isOld
		if !isTold {
			t.Errorf("%s: %s is %.40q, not %.40q, and nothing says so:\n%s", how, name, got, want, told)
		}
	}
}

// TestAnOldDatabaseGetsChecksums opens a database of version 2, which has no checksums.
func TestAnOldDatabaseGetsChecksums(t *testing.T) {
	dir, digest := fill(t)
	path := filepath.Join(dir, DatabaseName)
	old, err := sqlite3.Open(filepath.Join(dir, "old.db"))
	if err != nil {
		t.Fatal(err)
	}
	err = old.Exec(strings.Join(migrations[:2], "") + fmt.Sprintf("PRAGMA application_id = %d; "+
		"PRAGMA user_version = 2; ATTACH '%s' AS new; INSERT INTO logs SELECT * FROM new.logs; "+
		"INSERT INTO entries SELECT * FROM new.entries; "+
		"DETACH new; PRAGMA journal_mode = WAL", applicationID, dbfile.Address(path)))
	if err := errors.Join(err, old.Close(), os.Rename(filepath.Join(dir, "old.db"), path)); err != nil {
		t.Fatal(err)
	}
	if hasSums(t, path) {
		t.Fatal("the old database has checksums")
	}

	testReadOnly(t, dir, digest)
	f := openTest(t, dir)
	expectEntriesHave(t, f, "the state")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !hasSums(t, path) {
		t.Error("the database has no checksums")
	}
	if err := dbfile.Verify(path); err != nil {
		t.Error(err)
	}
}

// hasSums reports whether pages of a database end with a checksum.
func hasSums(t *testing.T, path string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data[20] == 8
}

// TestAStoreWithoutItsDatabaseIsRefused checks that a lost database is not replaced with a new one,
// because the store would look empty.
func TestAStoreWithoutItsDatabaseIsRefused(t *testing.T) {
	dir, _ := fill(t)
	if err := os.Remove(filepath.Join(dir, DatabaseName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("got %v", err)
	}
	q := damage.NewQuarantine(dir)
	if report, err := Check(t.Context(), dir, q); err != nil || report.IsWhole() {
		t.Errorf("got %v, %v", report, err)
	}
	if f, err := Open(dir); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestARepairIsRefusedWhileTheStoreIsInUse checks that a repair is refused immediately while a
// process uses the store, but a check without a repair is allowed.
func TestARepairIsRefusedWhileTheStoreIsInUse(t *testing.T) {
	dir, _ := fill(t)
	openTest(t, dir)
	var busy *dbfile.BusyError
	if _, err := Check(t.Context(), dir, damage.NewQuarantine(dir)); !errors.As(err, &busy) {
		t.Errorf("a repair in a store that is in use: %v", err)
	}
	if report, err := Check(t.Context(), dir, nil); err != nil || !report.IsWhole() || report.Records != 1 {
		t.Errorf("a look at a store that is in use: %+v, %v", report, err)
	}
}
