package wheels

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/pyfolder"
	"github.com/rlmhq/rlm/internal/testing/wheelindex"
)

// pure is the target of tests that do not need a specific one.
func pure() Target {
	return Target{Python: "3.13.5", Help: func(name string) string { return "advice on " + name }}
}

// resolve resolves requirements with an index of the given wheels, has.
func resolve(t *testing.T, target Target, wanted []string, has ...wheelindex.Wheel) ([]Pin, error) {
	t.Helper()
	server := wheelindex.Start(has...)
	defer server.Close()
	return Resolve(t.Context(), target, wanted, Options{Index: server.URL, CacheDir: t.TempDir()})
}

// names returns the pins in the form name==version.
func names(pins []Pin) (list []string) {
	for _, p := range pins {
		list = append(list, p.Name+"=="+p.Version)
	}
	return list
}

func TestTheNewestReleasesThatAgreeAreChosen(t *testing.T) {
	wheel := wheelindex.Make
	yanked := wheel("a-3.0-py3-none-any.whl", nil, nil)
	yanked.Yanked = true
	later := wheel("a-2.9-py3-none-any.whl", nil, nil)
	later.Python = ">=3.99"
	has := []wheelindex.Wheel{
		wheel("a-1.0-py3-none-any.whl", nil, nil),
		wheel("a-2.0-py3-none-any.whl", []string{
			"B_b>=1,<3", `gone; sys_platform == "win32"`, `c; extra == "more"`,
			`old; python_version < "3.12"`, `x (>1) ; python_version < "3"`,
		}, nil),
		later, yanked, wheel("a-4.0rc1-py3-none-any.whl", nil, nil),
		wheel("b_b-2.5-py2.py3-none-any.whl", []string{"c"}, nil),
		wheel("b_b-3.0-py3-none-any.whl", nil, nil),
		wheel("c-1.10-py3-none-any.whl", nil, nil), wheel("c-1.9-py3-none-any.whl", nil, nil),
		wheel("d-1.0-py3-none-any.whl", []string{"c<1.10", "b-b"}, nil),
		wheel("e-1.0-py3-none-any.whl", []string{"a[more]"}, nil),
	}

	for _, row := range []struct{ wanted, want string }{
		{"a", "a==2.0 b-b==2.5 c==1.10"},
		{"a==1.0", "a==1.0"},
		{"a==3.0", "a==3.0"},
		{"a>=4.0rc1", "a==4.0rc1"},
		{"A d", "a==2.0 b-b==2.5 c==1.9 d==1.0"},
		{"d", "b-b==3.0 c==1.9 d==1.0"},
		{"e", "a==2.0 b-b==2.5 c==1.10 e==1.0"},
		{"a!=2.0,<3", "a==1.0"},
		{"a~=1.0", "a==1.0"},
		{"b_b==2.*", "b-b==2.5 c==1.10"},
	} {
		t.Run(row.wanted, func(t *testing.T) {
			pins, err := resolve(t, pure(), strings.Fields(row.wanted), has...)
			if got := strings.Join(names(pins), " "); err != nil || got != row.want {
				t.Errorf("%s: %q %v, want %q", row.wanted, got, err, row.want)
			}
		})
	}
}

func TestPackagesOfTheTargetAreLeftOut(t *testing.T) {
	target := pure()
	target.Has = map[string]string{"b": "2.0"}
	a := wheelindex.Make("a-1-py3-none-any.whl", []string{"b"}, nil)
	if pins, err := resolve(t, target, []string{"a"}, a); err != nil || len(pins) != 1 {
		t.Errorf("%q %v", names(pins), err)
	}
	newer := wheelindex.Make("b-3.0-py3-none-any.whl", nil, nil)
	pins, err := resolve(t, target, []string{"a", "b>2"}, a, newer)
	if err != nil || len(pins) != 2 {
		t.Errorf("%q %v", names(pins), err)
	}
}

func TestErrorsExplainUnusableWheels(t *testing.T) {
	wheel := wheelindex.Make
	lying := wheel("lying-1.0-py3-none-any.whl", nil, nil)
	lying.Digest = strings.Repeat("0", 64)
	other := wheel("inner-9.0-py3-none-any.whl", nil, nil)
	other.File = "other-1.0-py3-none-any.whl"
	has := []wheelindex.Wheel{
		wheel("native-1.0-cp313-cp313-manylinux_2_17_x86_64.whl", nil, nil),
		wheel("native-0.9-py3-none-any.whl", nil, nil),
		wheel("needs-1.0-py3-none-any.whl", []string{"native"}, nil),
		wheel("a-1.0-py3-none-any.whl", []string{"c<2"}, nil),
		wheel("b-1.0-py3-none-any.whl", []string{"c>=2"}, nil),
		wheel("c-1.0-py3-none-any.whl", nil, nil), wheel("c-2.0-py3-none-any.whl", nil, nil),
		wheel("url-1.0-py3-none-any.whl", []string{"x @ https://example.com/x.whl"}, nil),
		wheel("marker-1.0-py3-none-any.whl", []string{`x; moon == "full"`}, nil),
		lying, other,
		{File: "broken-1.0-py3-none-any.whl", Data: []byte("PK not an archive")},
	}

	for wanted, want := range map[string]string{
		"native":     "native 1.0 has no wheel of pure Python: advice on native",
		"needs":      "required: native for needs 1.0",
		"a b":        "required: c<2 for a 1.0, c>=2 for b 1.0",
		"a==7":       "no release of a for Python 3.13.5 is ==7",
		"nothing":    "the index has no such package",
		"url":        `cannot use the package url: cannot read the requirement "x @ https`,
		"marker":     `"moon" is unknown`,
		"lying":      "its SHA-256 is",
		"other":      "it says that it is inner 9.0",
		"broken":     "cannot read the wheel broken",
		"../a":       `cannot read the requirement "../a"`,
		"a;x=='1'":   "without a condition",
		"a===1.0":    `cannot read the version "===1.0"`,
		"a>=1||1":    "cannot read the",
		"a==1.0<2":   "cannot read the version",
		"--pre":      "cannot read the requirement",
		"a[b":        "cannot read the requirement",
		"a.tar.gz/x": "cannot read the requirement",
	} {
		t.Run(wanted, func(t *testing.T) {
			_, err := resolve(t, pure(), strings.Fields(wanted), has...)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", wanted, err, want)
			}
		})
	}
}

func TestAnIndexThatIsNotTrustworthyIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect/":
			http.Redirect(to, r, "http://192.0.2.1/a/", http.StatusFound)
		case "/html/":
			_, _ = to.Write([]byte("<html></html>"))
		case "/text/":
			to.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
			_, _ = to.Write([]byte("[]"))
		default:
			to.WriteHeader(http.StatusTeapot)
		}
	}))
	defer server.Close()

	for _, row := range []struct{ index, name, want string }{
		{"http://192.0.2.1/simple", "a", "use https"},
		{"ftp://127.0.0.1/", "a", "use https"},
		{"https:///simple", "a", "it names no server"},
		{"https://user:secret@[::1", "a", "give a URL"},
		{server.URL, "redirect", "use https"},
		{server.URL, "html", "use an index that offers JSON"},
		{server.URL, "text", "not what PEP 691 describes"},
		{server.URL, "teapot", "teapot"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Resolve(t.Context(), pure(), []string{row.name}, Options{
				Index: row.index, CacheDir: t.TempDir(),
			})
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s %s: %v, want %q", row.index, row.name, err, row.want)
			}
		})
	}
}

// entry is a file of a hostile archive.
type entry struct {
	name, text string
	mode       fs.FileMode
}

// archive returns a wheel of the package a with exactly these entries.
func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	entries = append(entries, entry{
		name: "a-1.dist-info/METADATA", text: "Metadata-Version: 2.1\nName: a\nVersion: 1\n\n",
	})
	for _, e := range entries {
		head := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		head.SetMode(e.mode | 0o644)
		to, err := w.CreateHeader(head)
		if err == nil {
			_, err = to.Write([]byte(e.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// writeWheel writes a wheel and returns it as a pin.
func writeWheel(t *testing.T, data []byte) Pin {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.whl")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return Pin{Name: "a", File: "a-1-py3-none-any.whl", Path: name}
}

func TestHostileWheelsAreRefused(t *testing.T) {
	for want, entries := range map[string][]entry{
		`the name "../../etc/passwd"`: {{name: "../../etc/passwd"}},
		`the name "/etc/passwd"`:      {{name: "/etc/passwd"}},
		`the name "a/../../b"`:        {{name: "a/../../b"}},
		`the name "a\\..\\b"`:         {{name: `a\..\b`}},
		`the name "a\nb"`:             {{name: "a\nb"}},
		`the name "c:/b"`:             {{name: "c:/b"}},
		"not a regular file":          {{name: "a.py", text: "/etc/passwd", mode: fs.ModeSymlink}},
		`it has the file "a.py" twice`: {
			{name: "a.py"}, {name: "a-1.data/purelib/a.py"},
		},
		`"a" is a file and a folder`: {{name: "a"}, {name: "a/b.py"}},
		"grows by more than":         {{name: "a.py", text: strings.Repeat("#", 32<<20)}},
		"two folders with metadata":  {{name: "b-1.dist-info/METADATA"}},
		"the name \"x/x/x":           {{name: strings.Repeat("x/", 40) + "y"}},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := Open([]Pin{writeWheel(t, archive(t, entries...))})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

func TestFilesThatRunAtTheStartOfPythonAreNotInstalled(t *testing.T) {
	tree, err := Open([]Pin{writeWheel(t, archive(t,
		entry{name: "evil.pth", text: "import evil"}, entry{name: "sitecustomize.py"},
		entry{name: "usercustomize/__init__.py"}, entry{name: "a-1.data/purelib/b.pth"},
		entry{name: "a-1.data/scripts/python3"}, entry{name: "a-1.data/data/etc/passwd"},
		entry{name: "a-1.data/platlib/low/x.py"}, entry{name: "top.py", text: "1"},
	))})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	folder, err := pyfolder.Open(tree)
	if err != nil {
		t.Fatal(err)
	}

	want := []string{"a-1.dist-info/METADATA", "low/x.py", "top.py"}
	if !slices.Equal(folder.Files(), want) || !slices.Equal(folder.Modules(), []string{"low", "top"}) {
		t.Errorf("%q %q", folder.Files(), folder.Modules())
	}
	if data, err := folder.Read("top.py"); err != nil || string(data) != "1" {
		t.Errorf("%q %v", data, err)
	}
	if _, err := folder.Read("evil.pth"); err == nil {
		t.Error("it was read")
	}
}

func TestWheelsAreKeptByTheirDigests(t *testing.T) {
	server := wheelindex.Start(wheelindex.Official())
	defer server.Close()
	var said bytes.Buffer
	options := Options{Index: server.URL, CacheDir: t.TempDir(), Progress: &said}
	for range 2 {
		if _, err := Resolve(t.Context(), pure(), []string{"iniconfig"}, options); err != nil {
			t.Fatal(err)
		}
	}
	if got := said.String(); got != "fetching iniconfig-2.3.1-py3-none-any.whl\n" {
		t.Errorf("%q", got)
	}

	kept, err := filepath.Glob(filepath.Join(options.CacheDir, "*.whl"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q %v", kept, err)
	}
	if err := os.WriteFile(kept[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Resolve(t.Context(), pure(), []string{"iniconfig"}, options); err != nil {
		t.Errorf("a damaged file is not fetched again: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Resolve(ctx, pure(), []string{"iniconfig"}, options); err == nil {
		t.Error("it went on after the end")
	}
}

func TestTheBestWheelForATargetIsFound(t *testing.T) {
	linux := Target{Python: "3.13.5", Machine: "x86_64", Glibc: 41}
	order := []string{ // worst first
		"a-1-py3-none-any.whl",
		"a-1-py3-none-manylinux1_x86_64.whl",
		"a-1-cp39-abi3-manylinux2014_x86_64.whl",
		"a-1-cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
		"a-1-2build-cp313-cp313-manylinux_2_28_x86_64.whl",
	}
	last := -1
	for _, file := range order {
		name, ok := parseWheelName(file)
		rank := linux.rank(name.tags)
		if !ok || rank <= last {
			t.Errorf("%s: %v, rank %d after %d", file, ok, rank, last)
		}
		last = rank
	}

	for _, file := range []string{
		"a-1-cp312-cp312-manylinux_2_17_x86_64.whl", "a-1-cp314-abi3-manylinux_2_17_x86_64.whl",
		"a-1-cp313-cp313-manylinux_2_99_x86_64.whl", "a-1-cp313-cp313t-manylinux_2_17_x86_64.whl",
		"a-1-cp313-cp313-manylinux_2_17_aarch64.whl", "a-1-cp313-cp313-musllinux_1_2_x86_64.whl",
		"a-1-cp313-cp313-macosx_11_0_arm64.whl", "a-1-py2-none-any.whl", "a-1-py314-none-any.whl",
		"a-1-cp313-cp313-linux_x86_64.whl",
	} {
		t.Run(file, func(t *testing.T) {
			if name, ok := parseWheelName(file); !ok || linux.rank(name.tags) >= 0 {
				t.Errorf("%s suits", file)
			}
		})
	}
	for _, file := range []string{"a-1.whl", "a-1-py3-none-any.zip", "../a-1-py3-none-any.whl"} {
		t.Run(file, func(t *testing.T) {
			if _, ok := parseWheelName(file); ok {
				t.Errorf("%s is a wheel's name", file)
			}
		})
	}
	name, _ := parseWheelName(order[4])
	alone := pure()
	if alone.rank(name.tags) >= 0 || name.isPure() {
		t.Error("a compiled wheel is pure")
	}
}

func TestConditions(t *testing.T) {
	target := pure()
	for text, want := range map[string]bool{
		"":                         true,
		`python_version >= "3.9"`:  true,
		`python_version < '3.10'`:  false,
		`"3.13" <= python_version`: true,
		`sys_platform == "wasi" or sys_platform == "linux" and python_version < "3"`: true,
		`(sys_platform == "wasi" or os_name == "nt") and extra == "X_y"`:             true,
		`extra == "z"`:                         false,
		`extra != "z"`:                         true,
		`platform_machine in "x86_64 aarch64"`: false,
		`platform_machine not in "x86_64"`:     true,
		`implementation_name != "pypy"`:        true,
		`python_full_version == "3.13.*"`:      true,
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			if got, err := holds(text, target.facts(), []string{"x-y"}); err != nil || got != want {
				t.Errorf("%s: %v %v", text, got, err)
			}
		})
	}

	for _, text := range []string{
		"python_version", `python_version "3"`, `(os_name == "x"`, `os_name == "x")`, `os_name < "x"`,
		`extra < "x"`, `extra == os_name`, `os_name == x`, `os_name == "x" "y"`, "and", "§",
		strings.Repeat("(", 1000), `python_version ~~ "3"`, `python_version == "moon"`,
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			if _, err := holds(text, target.facts(), nil); err == nil {
				t.Errorf("%.50s: no error", text)
			}
		})
	}
}

// FuzzRequirement parses requirements and their conditions, which packages write.
func FuzzRequirement(f *testing.F) {
	f.Add(`a[b,c] (>=1,<2) ; python_version < "3" and extra == "b"`)
	f.Add("a~=1.0.*;((((")
	target := pure()
	f.Fuzz(func(_ *testing.T, text string) {
		if r, err := parseRequirement(text); err == nil {
			_, _ = holds(r.marker, target.facts(), r.extras)
			_ = namesPrerelease(r.spec)
		}
	})
}

// FuzzPage parses an index's answers.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"meta":{"api-version":"1.0"},"files":[{"filename":"a-1-py3-none-any.whl",` +
		`"url":"b","hashes":{"sha256":"` + strings.Repeat("0", 64) + `"},"requires-python":">=3","yanked":"x"}]}`))
	x, err := openIndex("https://example.com/simple/a/")
	if err != nil {
		f.Fatal(err)
	}
	target := pure()
	f.Fuzz(func(t *testing.T, data []byte) {
		files, err := readPage(data, x.url, "a")
		if err != nil {
			return
		}
		for _, one := range files {
			if one.url.Scheme != "https" && !strings.Contains(one.url.Host, "localhost") &&
				!strings.Contains(one.url.Host, "127.") && !strings.Contains(one.url.Host, "::1") {
				t.Errorf("a file lies at %s", one.url)
			}
		}
		_, _ = target.choose(files, "a", []string{""})
	})
}

// FuzzWheel opens archives, and checks that no name leads out of the folder, and that no file has
// more bytes than declared.
func FuzzWheel(f *testing.F) {
	f.Add(wheelindex.Official().Data)
	f.Add(wheelindex.Make("a-1-py3-none-any.whl", []string{"b"}, map[string]string{"a.py": "1"}).Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := Open([]Pin{writeWheel(t, data)})
		if err != nil {
			return
		}
		defer tree.Close()
		for _, file := range tree.File {
			if !fs.ValidPath(file.Name) || runsAtStart(file.Name) {
				t.Errorf("%q", file.Name)
			}
		}
		if folder, err := pyfolder.Open(tree); err == nil {
			for _, name := range folder.Files() {
				_, _ = folder.Read(name)
			}
		}
	})
}

func TestALockIsFollowed(t *testing.T) {
	server := wheelindex.Start(wheelindex.Official(), wheelindex.Make("a-1.0-py3-none-any.whl", nil, nil))
	defer server.Close()
	options := Options{Index: server.URL, CacheDir: t.TempDir()}
	pins, err := Resolve(t.Context(), pure(), []string{"iniconfig", "a"}, options)
	if err != nil {
		t.Fatal(err)
	}

	lock := FormatLock(pins)
	options.CacheDir = t.TempDir()
	target := pure()
	target.Has = map[string]string{"there": "1.5"}
	again, err := ReadLock(t.Context(), "# a comment\n\n"+lock, target, []string{"a>=1", "there"}, options)
	if err != nil || FormatLock(again) != lock {
		t.Errorf("%q %v", FormatLock(again), err)
	}

	for want, text := range map[string]string{
		"cannot read the line":      lock + "b\n",
		"is not a wheel of a":       strings.Replace(lock, "# a-1.0-py3", "# b-1.0-py3", 1),
		"its SHA-256 is":            strings.Replace(lock, pins[0].SHA256, strings.Repeat("1", 64), 1),
		"use https":                 strings.Replace(lock, server.URL, "http://192.0.2.1", 1),
		"the lock does not have a>": strings.Replace(lock, "a==1.0", "a==0.9", 1),
		"does not run on Python":    strings.Replace(lock, "a-1.0-py3-none-any", "a-1.0-py2-none-any", 1),
		"more than 1048576 bytes":   strings.Repeat("#\n", 1<<20),
	} {
		t.Run(want, func(t *testing.T) {
			_, err := ReadLock(t.Context(), text, pure(), []string{"a>=1"}, options)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// FuzzLock parses locks, which are files that users provide.
func FuzzLock(f *testing.F) {
	f.Add("a==1 --hash=sha256:" + strings.Repeat("0", 64) + " # a-1-py3-none-any.whl https://example.com/a\n")
	target := pure()
	f.Fuzz(func(t *testing.T, text string) {
		pins, err := parseLock(text)
		if err != nil {
			return
		}
		_ = checkLock(pins, &target, nil)
		again, err := parseLock(FormatLock(pins))
		if err != nil || !slices.Equal(again, pins) {
			t.Errorf("%v %+v %+v", err, pins, again)
		}
	})
}

func TestAnIndexWithoutReleases(t *testing.T) {
	_, err := (&Target{Python: "3.13.5"}).choose(nil, "a", []string{""})
	if err == nil || !strings.HasSuffix(err.Error(), "no release of a for Python 3.13.5 with a SHA-256 hash") {
		t.Error(err)
	}
}
