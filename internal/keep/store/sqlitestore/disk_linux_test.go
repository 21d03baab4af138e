package sqlitestore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/testing/smalldisk"
)

// noise returns bytes that do not compress.
func noise(n int) []byte {
	data, state := make([]byte, n), uint32(1)
	for i := range data {
		state = state*1664525 + 1013904223
		data[i] = byte(state >> 24)
	}
	return data
}

// TestADiskThatIsReallyFullLosesNothing fills a disk with contents or with entries.
func TestADiskThatIsReallyFullLosesNothing(t *testing.T) {
	for what, large := range map[string]store.Entry{
		"a content": {Turn: 2, Kind: "commit", Blob: noise(8 << 20)},
		"an entry":  {Turn: 2, Kind: "commit", Data: noise(8 << 20)},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			smalldisk.Mount(t, dir, "size=2m")
			f, id := openTest(t, dir), runA
			if err := f.Create(t.Context(), store.Log{ID: id, Title: "why?"}); err != nil {
				t.Fatal(err)
			}
			lease, err := f.Acquire(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			small := store.Entry{Turn: 1, Kind: "commit", Data: []byte("data"), Blob: []byte("the state")}
			if err := f.Append(t.Context(), lease, small); err != nil {
				t.Fatal(err)
			}

			for range 2 {
				err := f.Append(t.Context(), lease, large)
				if err == nil || !strings.Contains(err.Error(), ": free some space; earlier data is intact") {
					t.Fatalf("a full disk: %v", err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, blobFolder, "*", ".new-*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			expectEntries(t, f, id, small)

			smalldisk.Resize(t, dir, "64m")
			if err := f.Append(t.Context(), lease, large); err != nil {
				t.Errorf("with free space again: %v", err)
			}
			expectEntries(t, f, id, small, large)
		})
	}
}

// expectEntries compares the data and the contents of all entries.
func expectEntries(t *testing.T, f *Store, id store.ID, want ...store.Entry) {
	t.Helper()
	got, err := f.Entries(t.Context(), id, store.Query{})
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d entries, want %d: %v", len(got), len(want), err)
	}
	for i, e := range got {
		var blob []byte
		if e.Digest != "" {
			if blob, err = f.Blob(t.Context(), e.Digest); err != nil {
				t.Error(err)
			}
		}
		if !bytes.Equal(e.Data, want[i].Data) || !bytes.Equal(blob, want[i].Blob) {
			t.Errorf("entry %d has %d bytes and a content of %d", i, len(e.Data), len(blob))
		}
	}
	if _, err := os.Stat(filepath.Join(f.dir, "store.db")); err != nil {
		t.Error(err)
	}
}

// TestADiskThatCannotBeWrittenCanBeRead checks that a store on a read-only disk can be read, even
// if a killed process left it behind.
func TestADiskThatCannotBeWrittenCanBeRead(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%t", killed), func(t *testing.T) {
			from, digest := fill(t)
			if killed {
				f := openTest(t, from) // its log exists while the files are copied
				lease, err := f.Acquire(t.Context(), runA)
				if err != nil {
					t.Fatal(err)
				}
				if err := f.Append(t.Context(), lease, store.Entry{Turn: 2}); err != nil {
					t.Fatal(err)
				}
			}
			dir := t.TempDir()
			smalldisk.Mount(t, dir, "size=8m")
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			smalldisk.MakeReadOnly(t, dir)

			if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "cannot open the store "+dir) {
				t.Errorf("opening to write: %v", err)
			}
			testReadOnly(t, dir, digest)
		})
	}
}
