package documents

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTextsAreKeptByTheirDocument(t *testing.T) {
	o := Options{TextDir: filepath.Join(t.TempDir(), "documents")}
	find := func(kind Kind, data string) string {
		t.Helper()
		path, err := cacheFile(t.Context(), o, kind, strings.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := find(HTML, "a page")
	if path == find(HTML, "another page") || path == find(Mail, "a page") || path != find(HTML, "a page") {
		t.Fatal("the names of files do not depend on the documents alone")
	}

	if err := store(path, []byte("\x00\x04page\x01\x01a\x02\x00\x00"), []byte("a text")); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	about, err := fetch(path, &text)
	if err != nil || about == nil || text.String() != "a text" || about.Parts[0] != (Part{"a", 2}) {
		t.Fatalf("%+v %q %v", about, text.String(), err)
	}

	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string]string{
		"empty": "", "cut in its head": string(whole[:10]), "cut in its answer": string(whole[:22]),
		"of another version": "x" + string(whole[1:]), "of another text": string(whole[:len(whole)-5]),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			if about, err := fetch(path, io.Discard); about != nil || err != nil {
				t.Errorf("a file that is %s: %+v %v", name, about, err)
			}
		})
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"old", "middle", "new"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, maxCache/2); err != nil { // a hole, which occupies no space
			t.Fatal(err)
		}
		when := time.Now().Add(time.Duration(i-3) * time.Hour)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweep(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "new" {
		t.Errorf("%v %v", left, err)
	}
}
