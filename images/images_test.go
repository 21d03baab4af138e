package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

func TestRecipesAreWhole(t *testing.T) {
	hashes := map[string]bool{}
	for _, kind := range kinds {
		r, err := Find(kind)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Hash) != 64 || hashes[r.Hash] || r.Name != "rlm/"+kind+":"+r.Hash[:12] {
			t.Errorf("%+v", r)
		}
		hashes[r.Hash] = true
		b := imageBuild{recipe: r, options: Options{Mirror: "mirror"}}
		_, args, err := b.fetchScript(t.Context(), t.TempDir())
		if err != nil || slices.Contains(args, "") {
			t.Errorf("%s: %q %v", kind, args, err)
		}
		if command, _, err := r.finishCommand(); err != nil || slices.Contains(command, "") {
			t.Errorf("%s: %q %v", kind, command, err)
		}
	}

	r, err := Find(Python)
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{
		"numpy", "pandas", "scipy", "lxml", "openpyxl", "requests", "pydantic", "json",
	} {
		if !slices.Contains(r.Modules, name) {
			t.Errorf("python lacks the module %s", name)
		}
	}

	if _, err := Find("moon"); err == nil || !strings.Contains(err.Error(), "use one of python, go") {
		t.Errorf("%v", err)
	}

	for kind, want := range map[string]string{Go: "no checksum", Python: "use --latest"} {
		t.Run(fmt.Sprintf("%.60s", kind), func(t *testing.T) {
			b := imageBuild{recipe: Recipe{Kind: kind}}
			_, _, err = b.fetchScript(t.Context(), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
}

// TestTheImagePythonIsGivenTheRuntime checks which modules are compiled ahead of time in it.
func TestTheImagePythonIsGivenTheRuntime(t *testing.T) {
	list, err := extras(Python)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{}
	for _, e := range list {
		if name, ok := strings.CutPrefix(e.name, kernelFolder+"/"); ok {
			given[strings.TrimSuffix(name, ".py")] = e.text
			if isFinished(e.name) {
				t.Errorf("%s stays in the image", e.name)
			}
		}
	}

	if !maps.Equal(given, pykernel.Sources()) {
		t.Errorf("it is given %v", slices.Sorted(maps.Keys(given)))
	}
}

// TestTheImageGoHasAllThatItCompiles follows the imports of the code that is compiled in it.
func TestTheImageGoHasAllThatItCompiles(t *testing.T) {
	list, err := goSources()
	if err != nil {
		t.Fatal(err)
	}
	there, wanted := map[string]bool{}, map[string]string{}
	for _, e := range list {
		if path.Ext(e.name) != ".go" {
			continue
		}
		there[path.Dir(strings.TrimPrefix(e.name, goFolder+"/"))] = true
		file, err := parser.ParseFile(token.NewFileSet(), e.name, e.text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}

		for _, spec := range file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if own, ok := strings.CutPrefix(name, "github.com/rlmhq/rlm/"); ok {
				wanted[own] = e.name
			} else if strings.Contains(name, ".") {
				t.Errorf("%s imports %s, which is not of the standard library", e.name, name)
			}
		}
	}

	for name, by := range wanted {
		if !there[name] {
			t.Errorf("%s is not there, which %s imports", name, by)
		}
	}

	if !there["images/go/guest"] || !there["images/go/finish"] {
		t.Errorf("%v", there)
	}
}

func TestAnImageThatLacksAModuleIsRefused(t *testing.T) {
	r := Recipe{Kind: "python", Hash: strings.Repeat("a", 64), Modules: []string{"json", "numpy"}}
	if err := r.checkInventory(inventory{Modules: []string{"json", "numpy", "more"}}); err != nil {
		t.Error(err)
	}
	err := r.checkInventory(inventory{Modules: []string{"json"}})
	if err == nil || !strings.HasSuffix(err.Error(), ": numpy") {
		t.Errorf("%v", err)
	}
}

// packages returns a tar stream as packages could contain it.
func packages(t *testing.T) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, head := range []*tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o777},
		{Name: "./usr/bin/python3.13", Mode: 0o4755, Uid: 5, Gname: "staff", Size: 1},
		{Name: "./usr/bin/bash", Mode: 0o755, Size: 1},
		{Name: "./usr/bin/dash", Mode: 0o755, Size: 1},
		{Name: "./usr/bin/sh", Typeflag: tar.TypeSymlink, Linkname: "dash"},
		{Name: "./usr/bin/chroot", Mode: 0o755, Size: 1},
		{Name: "./usr/sbin/ldconfig", Mode: 0o755, Size: 1},
		{Name: "./usr/lib/x.so", Mode: 0o600, Size: 1},
		{Name: "./usr/lib/x.so", Mode: 0o600, Size: 1},
		{Name: "./usr/lib/libx.a", Mode: 0o644, Size: 1},
		{Name: "./usr/lib/python3/dist-packages/p/tests/test_a.py", Mode: 0o644, Size: 1},
		{Name: "./usr/share/doc/p/README", Mode: 0o644, Size: 1},
		{Name: "./usr/lib/locale/C.utf8/LC_TIME", Mode: 0o644, Size: 1},
		{Name: "./usr/share/zoneinfo/UTC", Mode: 0o644, Size: 1},
		{Name: "./etc/shadow", Mode: 0o600, Size: 1},
		{Name: "./dev/sda", Typeflag: tar.TypeBlock},
		{Name: "./usr/lib/y.so", Typeflag: tar.TypeSymlink, Linkname: "x.so"},
	} {
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}

		if head.Size > 0 {
			if _, err := w.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestLayersHaveOnlyWhatIsWanted(t *testing.T) {
	var out bytes.Buffer
	l := newLayer(&out)
	r, err := Find(Python)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.addFiles(packages(t), r.isWanted); err != nil {
		t.Fatal(err)
	}
	if err := l.to.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for in := tar.NewReader(&out); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			t.Fatal(err)
		}
		got = append(got, head.Name)
		if head.Mode&0o7000 != 0 || head.Uid != 0 || head.Gname != "" ||
			!head.ModTime.Equal(epoch) {
			t.Errorf("%+v", head)
		}
	}

	want := []string{
		"usr/bin/python3.13", "usr/bin/dash", "usr/bin/sh", "usr/lib/x.so",
		"usr/lib/locale/C.utf8/LC_TIME", "usr/share/zoneinfo/UTC", "usr/lib/y.so",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheListSaysWhichImagesAreUsed(t *testing.T) {
	recipe, err := Find(Python)
	if err != nil {
		t.Fatal(err)
	}
	list, err := describe([]dockerapi.Image{
		{ID: "1", Kind: Python, Recipe: "another", Names: []string{"rlm/python:another"}},
		{ID: "2", Kind: Python, Recipe: recipe.Hash, Names: []string{recipe.Name}},
		{ID: "3", Kind: Go, Recipe: "another"},
	})
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v %v", list, err)
	}

	for i, want := range []string{"1 false", "2 true", "3 false", " false"} {
		if got := fmt.Sprint(list[i].ID, " ", list[i].Used); got != want {
			t.Errorf("image %d is %q, want %q", i, got, want)
		}
	}

	if missing := list[3]; missing.Kind != Go || len(missing.Names) != 1 {
		t.Errorf("%+v", missing)
	}
}
