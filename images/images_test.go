package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestRecipesAreWhole(t *testing.T) {
	for _, kind := range Kinds() {
		r, err := Find(kind)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Hash) != 64 || !strings.HasPrefix(r.Name(), "rlm/"+kind+":") || len(r.Packages) == 0 || len(programs[kind]) == 0 {
			t.Errorf("%+v", r)
		}
		for _, name := range []string{"numpy", "pandas", "scipy", "lxml", "openpyxl", "requests", "pydantic", "json"} {
			if !slices.Contains(r.Modules, name) {
				t.Errorf("%s lacks the module %s", kind, name)
			}
		}
	}
	if _, err := Find("moon"); err == nil || !strings.Contains(err.Error(), "only python") {
		t.Errorf("%v", err)
	}
}

func TestAnImageThatLacksAModuleIsRefused(t *testing.T) {
	r := Recipe{Kind: "python", Hash: strings.Repeat("a", 64), Modules: []string{"json", "numpy"}}
	if err := r.matches(inventory{Modules: []string{"json", "numpy", "more"}}); err != nil {
		t.Error(err)
	}
	if err := r.matches(inventory{Modules: []string{"json"}}); err == nil || !strings.HasSuffix(err.Error(), ": numpy") {
		t.Errorf("%v", err)
	}
}

// packages is a tar stream as packages could give it.
func packages(t *testing.T) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, head := range []*tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o777},
		{Name: "./usr/bin/python3.13", Mode: 0o4755, Uid: 5, Gname: "staff", Size: 1},
		{Name: "./usr/bin/bash", Mode: 0o755, Size: 1},
		{Name: "./usr/sbin/ldconfig", Mode: 0o755, Size: 1},
		{Name: "./usr/lib/x.so", Mode: 0o600, Size: 1},
		{Name: "./usr/lib/x.so", Mode: 0o600, Size: 1},
		{Name: "./usr/lib/libx.a", Mode: 0o644, Size: 1},
		{Name: "./usr/lib/python3/dist-packages/p/tests/test_a.py", Mode: 0o644, Size: 1},
		{Name: "./usr/share/doc/p/README", Mode: 0o644, Size: 1},
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
	if err := l.add(packages(t), wantedFile(programs["python"]...)); err != nil {
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
		if head.Mode&0o7000 != 0 || head.Uid != 0 || head.Gname != "" || !head.ModTime.Equal(epoch) {
			t.Errorf("%+v", head)
		}
	}
	want := []string{"usr/bin/python3.13", "usr/lib/x.so", "usr/share/zoneinfo/UTC", "usr/lib/y.so"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
