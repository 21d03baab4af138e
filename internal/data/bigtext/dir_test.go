package bigtext

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func makeDir(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestDir(t *testing.T) {
	root := makeDir(t, "b.txt", "a/z", "a/b/c", "a.txt", "empty/x")
	outside := writeFile(t, []byte("secret"))
	for _, link := range []string{"link", "a/link"} {
		if err := os.Symlink(outside, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	d, err := OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	want := []string{"a.txt", "a/b/c", "a/z", "b.txt", "empty/x"}
	if !slices.Equal(d.Names(), want) || d.LeftOut()[LinksAndSpecial] != 2 {
		t.Fatalf("%q, %d skipped", d.Names(), d.LeftOut()[LinksAndSpecial])
	}
	for _, name := range want {
		t.Run(name, func(t *testing.T) {
			text, err := d.Text(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := d.Size(name)
			data, _, err := text.Slice(bg, 0, n)
			if string(data) != "text of "+name || err != nil || text.Name() != name {
				t.Errorf("%q %v", data, err)
			}
		})
	}
	checkEscapes(t, d, root, outside)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.Text(t.Context(), "a/z"); !errorsIs(err, errClosed) {
		t.Error(err)
	}
}

// checkEscapes tries to open files outside the directory.
func checkEscapes(t *testing.T, d *Dir, root, outside string) {
	t.Helper()
	for _, name := range []string{"link", "../x", "/etc/passwd", "", ".", "a", "missing", outside} {
		if _, err := d.Text(t.Context(), name); !errorsIs(err, os.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
	// This file becomes a link after the walk.
	path := filepath.Join(root, "empty", "x")
	last, err := d.Text(t.Context(), "empty/x")
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Text(t.Context(), "empty/x"); err == nil {
		t.Error("a link was followed")
	}
}

// TestDirChanges writes to files of a directory after they were opened, and checks that a long one
// returns an error and a short one keeps its content.
func TestDirChanges(t *testing.T) {
	root := makeDir(t, "short", "long")
	if err := os.WriteFile(filepath.Join(root, "long"), make([]byte, maxCopied+1),
		0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, want := range map[string]error{"short": nil, "long": ErrChanged} {
		t.Run(name, func(t *testing.T) {
			text, err := d.Text(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			size := text.Size()
			if err := os.WriteFile(filepath.Join(root, name), []byte("another"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := text.Changed(); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
			if data, _, err := text.Slice(bg, 0, size); want == nil &&
				(string(data) != "text of short" || err != nil) {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		})
	}
}

func TestDirBounds(t *testing.T) {
	var files []string
	for i := range maxOpen + 10 {
		files = append(files, fmt.Sprintf("d%d/f", i))
	}
	root := makeDir(t, files...)
	d, err := OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	first, err := d.Text(t.Context(), "d0/f")
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Text(t.Context(), "d0/f")
	if err != nil || again != first {
		t.Error("a text is opened twice", err)
	}
	for _, name := range d.Names() {
		if _, err := d.Text(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.open) > maxOpen {
		t.Errorf("%d texts are open", len(d.open))
	}
	if _, err := first.Len(bg); !errorsIs(err, errClosed) && d.open[len(d.open)-1] != first {
		t.Error(err)
	}
	small := &Dir{name: root, root: d.root, sizes: map[string]int64{}, leftOut: map[string]int{}}
	if err := small.walk([]string{"."}, 20); !errorsIs(err, ErrTooLarge) {
		t.Error(err)
	}
	if _, err := OpenDir(filepath.Join(root, "missing")); !errorsIs(err, os.ErrNotExist) {
		t.Error(err)
	}
}
