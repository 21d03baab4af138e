package session

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// openLong returns a text of size bytes.
func openLong(t *testing.T, size int) *bigtext.Text {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := bigtext.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = text.Close() })
	return text
}

// TestTextFolder checks that the folder contains each text whose characters a guest requests, once,
// until the folder is closed.
func TestTextFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has links to files without a name")
	}
	t.Setenv("TMPDIR", t.TempDir())
	a, err := NewAccounts(t.Context(), tiers.Config{Inputs: []tiers.Input{
		{Name: "short", Text: openLong(t, 10)},
		{Name: "long", Text: openLong(t, LongText+1)},
		{Name: "value", Value: tiers.Value("1")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if sum := a.SumLongTexts(); sum != LongText+1 {
		t.Errorf("the long texts have %d bytes, want %d", sum, LongText+1)
	}
	if r := a.Handle([]byte("tm1")); !r.Failed || string(r.Data) != errNoMapping.Error() {
		t.Errorf("without a folder: %s", r.Data)
	}

	folder := a.ShowTexts(slog.New(slog.DiscardHandler))
	if folder == nil {
		t.Fatal("there is no folder")
	}
	if err := a.Begin(t.Context(), tiers.Job{}); err != nil {
		t.Fatal(err)
	}
	const want = `{"ascii":true,"chars":8388609,"place":"/context/texts/1","width":1}`
	for range 2 {
		if r := a.Handle([]byte("tm1")); string(r.Data) != want {
			t.Errorf("%s, want %s", r.Data, want)
		}
	}
	for _, request := range []string{"tm0", "tm2", "tm3", "tm-1", "tm", "tm1,2", "tm../1", "tm1048576"} {
		t.Run(request, func(t *testing.T) {
			if r := a.Handle([]byte(request)); !r.Failed {
				t.Errorf("%s: %s", request, r.Data)
			}
		})
	}
	files, err := os.ReadDir(folder.Path())
	if err != nil || len(files) != 1 || files[0].Name() != "1" {
		t.Errorf("the folder has %v (%v)", files, err)
	}
	if info, err := os.Stat(filepath.Dir(folder.Path())); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may enter the folder: %v (%v)", info.Mode(), err)
	}

	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	long, _, err := a.openText(1)
	for range 2 { // the second time without another attempt
		if _, _, err := folder.show(t.Context(), 3, long); err == nil {
			t.Error("a folder that is gone shows a text")
		}
		if err := os.MkdirAll(folder.Path(), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(err, folder.Close()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// TestAbandonedTextFoldersAreRemoved checks that the folders of dead processes are removed, and no
// others.
func TestAbandonedTextFoldersAreRemoved(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has such folders")
	}
	t.Setenv("TMPDIR", t.TempDir())
	var folders []*TextFolder
	for range 3 {
		f, err := newTextFolder()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.Path(), "0"), []byte("text"), 0o444); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, f)
	}
	used, young, dead := folders[0], folders[1], folders[2]
	defer used.Close()
	for _, f := range []*TextFolder{young, dead} {
		if err := f.lock.Close(); err != nil { // as at the end of a process
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * abandonedAge)
	for _, f := range []*TextFolder{used, dead} {
		if err := os.Chtimes(f.outer, old, old); err != nil {
			t.Fatal(err)
		}
	}

	removeAbandoned()
	for name, f := range map[string]*TextFolder{"used": used, "young": young, "dead": dead} {
		t.Run(name, func(t *testing.T) {
			_, err := os.Stat(f.Path())
			if exists := err == nil; exists != (f != dead) {
				t.Errorf("the %s folder exists: %v", name, exists)
			}
		})
	}
}
