package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/python/wheels"
	"github.com/rlmhq/rlm/internal/testing/wheelindex"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

func TestImagesAreNamedByTheirPackages(t *testing.T) {
	long := nameFor([]string{"matplotlib", "pyarrow", "scikit-learn", "statsmodels", "polars"})
	recipe := Recipe{Kind: Python, Hash: strings.Repeat("a", 64)}
	for name, want := range map[string]string{
		nameFor([]string{"Scikit_Learn>=1.5", " pyarrow[x]==2"}): "rlm/python-scikit-learn-pyarrow:aaaaaaaaaaaa",
		"a.b_c-1": "rlm/python-a.b_c-1:aaaaaaaaaaaa", long: "rlm/python-" + long + ":aaaaaaaaaaaa",
		"A": "", "": "", "a/b": "", "a:b": "", "-a": "", "a--b": "", strings.Repeat("a", 61): "",
	} {
		if got, err := recipe.Extended(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", name, got, err)
		}
	}
	if len(long) > maxDefaultName || long == nameFor([]string{"matplotlib", "pyarrow", "scikit-learn", "statsmodels"}) {
		t.Errorf("%q", long)
	}
}

// TestPackagesComeIntoAFolderOfTheirOwn reads the layer that a build writes.
func TestPackagesComeIntoAFolderOfTheirOwn(t *testing.T) {
	wheel := wheelindex.Make("greet-1-py3-none-any.whl", nil, map[string]string{
		"greet.py": "import os", "greet.pth": "import os", "lib/x.cpython-313-x86_64-linux-gnu.so": "ELF",
		"greet-1.data/data/etc/passwd": "root", "greet-1.data/scripts/sh": "#!/bin/sh", "\u00e9.py": "",
	})
	path := filepath.Join(t.TempDir(), "wheel")
	if err := os.WriteFile(path, wheel.Data, 0o600); err != nil {
		t.Fatal(err)
	}
	b := &imageBuild{pins: []wheels.Pin{{Name: "greet", Version: "1", File: wheel.File, Path: path}}}
	b.options.With = []string{"greet"}
	tree, err := wheels.Open(b.pins)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	b.noteModules(tree)

	var out bytes.Buffer
	l := newLayer(&out)
	if err := errors.Join(b.addPackages(l, tree), l.to.Close()); err != nil {
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
		if head.Uid != 0 || head.Mode&0o7022 != 0 || !head.ModTime.Equal(epoch) {
			t.Errorf("%+v", head)
		}
	}

	const folder = "usr/lib/rlm/packages/"
	want := []string{
		folder, "usr/share/rlm/packages.lock", folder + "greet-1.dist-info/METADATA",
		folder + "greet-1.dist-info/WHEEL", folder + "greet.py",
		folder + "lib/x.cpython-313-x86_64-linux-gnu.so", folder + "\u00e9.py",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if packages, modules := b.labels(); packages != "greet==1" || modules != "greet lib" {
		t.Errorf("%q %q", packages, modules)
	}
}

func TestAnImageWithPackagesIsNotTheImagePython(t *testing.T) {
	recipe, err := Find(Python)
	if err != nil {
		t.Fatal(err)
	}
	list, err := describe([]dockerapi.Image{{
		ID: "1", Kind: Python, Recipe: recipe.Hash, Names: []string{"x"}, Packages: "a==1 b==2",
	}})
	if err != nil || len(list) != 3 || !list[0].Used || len(list[0].Packages) != 2 ||
		!slices.ContainsFunc(list, func(i Image) bool { return i.ID == "" && i.Kind == Python }) {
		t.Errorf("%+v %v", list, err)
	}
}
