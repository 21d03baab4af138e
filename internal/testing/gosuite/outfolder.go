package gosuite

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// testOutFolder checks that the files that snippets write below /out are copied to the host. Links
// must not lead out of the folder.
func testOutFolder(t *testing.T, tier tiers.Tier) {
	s := Open(t, tier, tiers.Config{Out: true})
	RunOK(t, s, `import "os"
err := os.MkdirAll("/out/d/empty", 0o755)
err = os.WriteFile("/out/a.txt", []byte("first "), 0o644)
err = os.WriteFile("/out/d/größe.bin", make([]byte, 3<<20), 0o600)
err = os.Symlink("/etc/passwd", "/out/link")
if err != nil {
	panic(err)
}`)
	RunOK(t, s, `f, err := os.OpenFile("/out/a.txt", os.O_APPEND|os.O_WRONLY, 0)
_, err = f.WriteString("second")
err = f.Close()`)
	if r := RunSnippet(t, s, `os.WriteFile("/out/kept", nil, 0o644)
panic("later")`); r.Status != tiers.StatusRaised {
		t.Errorf("%+v", r)
	}

	collector, ok := s.(tiers.Collector)
	if !ok {
		t.Fatal("the sandbox cannot copy files to the host")
	}
	dir := filepath.Join(t.TempDir(), "files")
	got, err := collector.Collect(t.Context(), dir)
	if err != nil || got.Files != 3 || got.Bytes != 3<<20+12 || got.Lost != "" {
		t.Errorf("%+v, %v", got, err)
	}
	var names []string
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, filepath.ToSlash(strings.TrimPrefix(path, dir)))
		return err
	})
	want := []string{"", "/a.txt", "/d", "/d/empty", "/d/größe.bin", "/kept"}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v", names, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); string(text) != "first second" {
		t.Errorf("%q, %v", text, err)
	}

	// A file elsewhere is lost, which a single note says.
	const lost = "note: result.csv will be lost with the sandbox: write files to keep below /out\n"
	if r := RunOK(t, s, `err = os.WriteFile("result.csv", nil, 0o644)
err = os.WriteFile(".hidden", nil, 0o644)
err = os.WriteFile(os.TempDir()+"/x", nil, 0o644)`); r.Stderr != lost {
		t.Errorf("%q, want %q", r.Stderr, lost)
	}
	if r := RunOK(t, s, `err = os.WriteFile("x", nil, 0o644)
err = os.Remove("x")`); r.Stderr != "" {
		t.Errorf("%q", r.Stderr)
	}

	// The session continues, and the folder's size is limited.
	r := RunOK(t, s, `import "fmt"
err = os.WriteFile("/out/large", make([]byte, 65<<20), 0o644)
fmt.Println(err != nil)
err = os.Remove("/out/large")`)
	if r.Stdout != "true\n" {
		t.Errorf("%q", r.Stdout)
	}
}
