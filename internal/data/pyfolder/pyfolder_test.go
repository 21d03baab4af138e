package pyfolder_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rlmhq/rlm/internal/data/pyfolder"
)

func TestModulesAreFoundByTheNamesOfFiles(t *testing.T) {
	got := pyfolder.Modules([]string{
		"a/__init__.py", "b.py", "c.cpython-313-x86_64-linux-gnu.so", "space/inner/x.py",
		"d-1.dist-info/METADATA", "d-1.dist-info/x.py", "d.libs/x.so", "e/data.txt", "1f.py",
		"__pycache__/a.cpython-313.pyc", "g-h/x.py", "LICENSE", "é/x.py",
	})
	if want := []string{"a", "b", "c", "space", "é"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFolderIsBounded(t *testing.T) {
	many := fstest.MapFS{}
	for i := range 20_001 {
		many[strings.Repeat("a", i%150+1)+"/"+string(rune('a'+i%26))+strings.Repeat("b", i/150)] = &fstest.MapFile{}
	}
	file := &fstest.MapFile{Data: []byte("x")}
	for want, files := range map[string]fs.FS{
		"rlm images build --with":        fstest.MapFS{"a/b.cpython-313.so": file},
		"too long or has control":        fstest.MapFS{"a\nb.py": file},
		"too long":                       fstest.MapFS{strings.Repeat("x", 401): file},
		"more than 20000 files":          many,
		"is not a regular file":          fstest.MapFS{"a.py": &fstest.MapFile{Mode: fs.ModeSocket}},
		"cannot use the Python packages": fstest.MapFS{"a.py": &fstest.MapFile{Mode: fs.ModeNamedPipe}},
	} {
		if _, err := pyfolder.Open(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestOnlyListedFilesAreRead(t *testing.T) {
	files := fstest.MapFS{"a.py": &fstest.MapFile{Data: []byte("short")}}
	folder, err := pyfolder.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	files["later.py"] = &fstest.MapFile{}
	files["a.py"] = &fstest.MapFile{Data: []byte("longer than before")}
	if data, err := folder.Read("a.py"); err != nil || string(data) != "longe" {
		t.Errorf("%q %v", data, err)
	}
	for _, name := range []string{"later.py", "../a.py", "", "/etc/passwd"} {
		if _, err := folder.Read(name); !errors.Is(err, pyfolder.ErrNoFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again, err := pyfolder.Open(folder); err != nil || again != folder {
		t.Errorf("it is listed again: %v", err)
	}
}
