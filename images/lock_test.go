package images

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheLocksHaveEveryPackage checks the locks of all architectures.
func TestTheLocksHaveEveryPackage(t *testing.T) {
	wanted, err := readWords("python/packages.txt")
	if err != nil {
		t.Fatal(err)
	}

	line := regexp.MustCompile(`^[a-z0-9.+-]+ [^ ]+ (amd64|arm64|all) [0-9a-f]{64} ` +
		`debian(-security)?/pool/[^ ]+\.deb$`)
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			text, err := recipes.ReadFile("python/packages." + arch + ".lock")
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			if !regexp.MustCompile(`^\d{8}T\d{6}Z$`).MatchString(lines[0]) {
				t.Errorf("%s: %q is not a time", arch, lines[0])
			}

			var names []string
			for _, l := range lines[1:] {
				if !line.MatchString(l) {
					t.Errorf("%s: %q", arch, l)
				}
				name, _, _ := strings.Cut(l, " ")
				names = append(names, name)
			}
			for _, name := range wanted {
				if !slices.Contains(names, name) {
					t.Errorf("%s: %s is not locked", arch, name)
				}
			}
		})
	}
}

// archive serves a package to fetch.sh, as Debian's mirrors do.
type archive struct {
	*httptest.Server
	deb   []byte
	asked []string
	// has reports which paths exist.
	has func(path string) bool
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	a := &archive{}
	if _, err := os.Stat("/usr/lib/apt/apt-helper"); err != nil {
		t.Skip("it needs apt")
	}
	tree := t.TempDir()
	for name, text := range map[string]string{
		"DEBIAN/control": "Package: pear\nVersion: 1:2~a+b\nArchitecture: all\n" +
			"Maintainer: a <a@b>\nDescription: a pear\n",
		"usr/lib/pear": "sweet",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	file := filepath.Join(t.TempDir(), "pear.deb")
	if out, err := exec.Command("dpkg-deb", "--build", tree, file).CombinedOutput(); err != nil {
		t.Skipf("it needs dpkg-deb: %v %s", err, out)
	}
	var err error
	if a.deb, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}

	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked = append(a.asked, r.URL.Path)
		if !a.has(r.URL.Path) {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(a.deb)
	}))
	t.Cleanup(a.Close)
	return a
}

// fetch runs fetch.sh and returns the text of the packages' file, and the script's output.
func (a *archive) fetch(t *testing.T, work, hash string) (content map[string]string, said string, err error) {
	t.Helper()
	lock := filepath.Join(work, "lock")
	text := "20260102T030405Z\npear 1:2~a+b all " + hash + " debian/pool/p/pear_2~a+b_all.deb\n"
	if err := os.WriteFile(lock, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}

	var out, errs strings.Builder
	cmd := exec.Command("sh", "python/fetch.sh", work, lock, a.URL+"/mirror", a.URL+"/snapshots")
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()

	content = map[string]string{}
	for in := tar.NewReader(strings.NewReader(out.String())); err == nil; {
		head, end := in.Next()
		if errors.Is(end, io.EOF) {
			break
		}
		if end != nil {
			t.Fatal(end)
		}
		data, _ := io.ReadAll(in)
		content[strings.TrimPrefix(head.Name, "./")] = string(data)
	}
	return content, errs.String(), err
}

const (
	onMirror   = "/mirror/debian/pool/p/pear_2~a+b_all.deb"
	inSnapshot = "/snapshots/debian/20260102T030405Z/pool/p/pear_2~a+b_all.deb"
)

func TestLockedPackagesComeFromTheMirrorOrTheSnapshot(t *testing.T) {
	for _, from := range []string{onMirror, inSnapshot} {
		t.Run(fmt.Sprintf("%.60s", from), func(t *testing.T) {
			a := newArchive(t)
			a.has = func(path string) bool { return path == from }
			hash := fmt.Sprintf("%x", sha256.Sum256(a.deb))
			work := t.TempDir()

			for range 2 { // the second time from the cache
				content, said, err := a.fetch(t, work, hash)
				if err != nil || content["usr/lib/pear"] != "sweet" ||
					content["usr/share/rlm/packages.txt"] != "pear 1:2~a+b all\n" {
					t.Fatalf("%v %q\n%s", err, content, said)
				}
			}
			if n := len(a.asked); a.asked[n-1] != from || slices.Index(a.asked, from) != n-1 {
				t.Errorf("asked for %q, want %s once, at last", a.asked, from)
			}
		})
	}
}

func TestAPackageThatIsNotTheLockedOneIsRefused(t *testing.T) {
	a := newArchive(t)
	for name, has := range map[string]bool{"gone": false, "another": true} {
		t.Run(name, func(t *testing.T) {
			a.has = func(string) bool { return has }
			_, said, err := a.fetch(t, t.TempDir(), strings.Repeat("ab", 32))
			if err == nil || !strings.Contains(said, "packages pear=1:2~a+b: neither") ||
				!strings.Contains(said, "use --latest") {
				t.Errorf("%s: %v\n%s", name, err, said)
			}
		})
	}
}
