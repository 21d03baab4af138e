package runlog

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
)

// openStores opens a store twice, like two processes.
func openStores(t *testing.T) (writes, reads *sqlitestore.Store) {
	t.Helper()
	dir := t.TempDir()
	for _, s := range []**sqlitestore.Store{&writes, &reads} {
		f, err := sqlitestore.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		*s = f
	}
	return writes, reads
}

// openRun begins or continues a run.
func openRun(t *testing.T, s store.Store) *Log {
	t.Helper()
	j, _, err := Open(t.Context(), s, store.Log{ID: store.ID{Kind: store.Run, Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// read returns the news of a run: its status, "anew", and the kinds of the entries.
func read(t *testing.T, r *Reader) string {
	t.Helper()
	news, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{news.Run.Status}
	if news.IsAnew {
		parts = append(parts, "anew")
	}
	var lines bytes.Buffer
	if err := news.Write(&lines); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(lines.String()) {
		var e struct{ Kind, Key string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, e.Kind+e.Key)
	}
	return strings.Join(parts, " ")
}

func commit(t *testing.T, j *Log, turn int) {
	t.Helper()
	if err := j.Commit(t.Context(), Commit{Turn: turn, Data: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
}

// TestAReaderGetsWhatIsNew checks a reader throughout the life of a run: the run's process ends,
// turns are removed, and another process continues.
func TestAReaderGetsWhatIsNew(t *testing.T) {
	writes, reads := openStores(t)
	r := NewReader(reads, "a")
	wants := func(want string) {
		t.Helper()
		if got := read(t, r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	j := openRun(t, writes)
	wants("running anew")
	wants("running")
	if err := j.Pin(t.Context(), "k", "v", false); err != nil {
		t.Fatal(err)
	}
	wants("running pink")
	commit(t, j, 1)
	commit(t, j, 2)
	wants("running commit commit")

	if err := writes.Release(j.lease); err != nil { // the end of its process
		t.Fatal(err)
	}
	wants("interrupted")
	if err := Rewind(t.Context(), writes, "a", 1); err != nil {
		t.Fatal(err)
	}
	wants("interrupted anew pink commit")

	j = openRun(t, writes)
	wants("running")
	commit(t, j, 2)
	wants("running commit")
	if err := j.Close("answered", ""); err != nil {
		t.Fatal(err)
	}
	wants("answered")

	if err := Remove(t.Context(), writes, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(t.Context()); err == nil {
		t.Error("a run that was removed can be read")
	}
	openRun(t, writes)
	wants("running anew")
}

// endsBetween is a store in which a run ends just after its log was read.
type endsBetween struct {
	store.Store
	end func()
}

func (s *endsBetween) Owner(ctx context.Context, id store.ID) (string, error) {
	s.end()
	return s.Store.Owner(ctx, id)
}

// TestARunThatEndsIsNotInterrupted checks that a run that ends between two reads of its state is
// reported as ended.
func TestARunThatEndsIsNotInterrupted(t *testing.T) {
	writes, reads := openStores(t)
	j := openRun(t, writes)
	log, err := Look(t.Context(), &endsBetween{reads, func() {
		if err := j.Close("answered", "done"); err != nil {
			t.Error(err)
		}
	}}, "a")
	if err != nil || log.Status != "answered" || log.Reason != "done" {
		t.Errorf("%+v, %v", log, err)
	}
}
