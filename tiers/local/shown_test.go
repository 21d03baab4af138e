//go:build unix

package local_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

const systemPython = "/usr/bin/python3"

// homeOf creates a home directory with these files, which all users may read, and makes it the
// home of this user. Each file contains its path.
func homeOf(t *testing.T, files ...string) string {
	t.Helper()
	needCommonPython(t)
	//nolint:usetesting // not below /tmp: sandboxes have their own
	home, err := os.MkdirTemp("/var/tmp", "rlm-home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := os.Chmod(home, 0o755); err != nil { //nolint:gosec // the guest's user may look
		t.Fatal(err)
	}

	t.Setenv("HOME", home)
	for _, file := range files {
		path := filepath.Join(home, file)
		err := errors.Join(
			os.MkdirAll(filepath.Dir(path), 0o755),                    //nolint:gosec // as above
			os.WriteFile(path, fmt.Appendf(nil, "%q\n", path), 0o644), //nolint:gosec // as above
		)
		if err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// link creates a symbolic link.
func link(t *testing.T, name, target string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o755) //nolint:gosec // the guest's user may look
	if err := errors.Join(err, os.Symlink(target, name)); err != nil {
		t.Fatal(err)
	}
}

// makeVenv creates a virtual environment, and returns its interpreter and its site-packages.
func makeVenv(t *testing.T, dir string) (python, packages string) {
	t.Helper()
	out, err := exec.Command(systemPython, "-m", "venv", "--without-pip", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("cannot make a virtual environment: %v: %s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages"))
	if err != nil || len(found) != 1 {
		t.Fatalf("it has the packages %q, %v", found, err)
	}
	return filepath.Join(dir, "bin", "python3"), found[0]
}

// seen runs a snippet that reads files of a home and imports modules, and returns the names of
// those that it could read or import. As the negative control, a plain interpreter succeeds with
// every name.
func seen(t *testing.T, tier *local.Tier, python, home string, names ...string) []string {
	t.Helper()
	source := fmt.Sprintf(`import importlib, os
for name in %q.split():
    try:
        if '/' in name: open(os.path.join(%q, name)).read()
        else: importlib.import_module(name)
        print(name)
    except (OSError, ImportError): pass`, strings.Join(names, " "), home)
	plain, err := exec.Command(python, "-I", "-c", source).Output()
	if all := strings.Fields(string(plain)); err != nil || !slices.Equal(all, names) {
		t.Fatalf("without a sandbox it sees %q, not %q: %v", all, names, err)
	}

	tiertest.Require(t, local.Name, tier.Probe(t.Context()))
	r := run(t, box(t, tier, tiers.Config{}), source)
	if r.Status != tiers.StatusOK {
		t.Fatalf("%s %+v", r.Status, r.Exception)
	}
	return strings.Fields(r.Stdout)
}

// expectSeen compares the names that a snippet could read or import with those that it should.
func expectSeen(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("a snippet sees %q, not %q", got, want)
	}
}

func TestALinkToAnInterpreterDoesNotShowItsFolder(t *testing.T) {
	home := homeOf(t, ".ssh/id_ed25519", "keys/server.pem")
	python := filepath.Join(home, "py")
	link(t, python, systemPython)

	tier := newTier(t, local.Options{Python: python, Warm: -1})
	got := seen(t, tier, python, home, ".ssh/id_ed25519", "keys/server.pem", "json")
	expectSeen(t, got, "json")
}

// TestALinkToAPrefixRunsItsPython checks an interpreter that is named through a link to its whole
// prefix, such as installers create for each minor version.
func TestALinkToAPrefixRunsItsPython(t *testing.T) {
	home := homeOf(t)
	prefix := filepath.Join(home, "versions", "one")
	library, err := filepath.Glob("/usr/lib/python3.*/os.py")
	if err != nil || len(library) == 0 {
		t.Fatalf("the system's Python has the libraries %q, %v", library, err)
	}
	folder := filepath.Dir(library[len(library)-1])
	link(t, filepath.Join(prefix, "lib", filepath.Base(folder)), folder)
	program, err := os.ReadFile(systemPython)
	if err == nil {
		err = os.MkdirAll(filepath.Join(prefix, "bin"), 0o755) //nolint:gosec // the guest may look
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(prefix, "bin", "python3"), program, 0o755) //nolint:gosec // as above
	}
	if err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join(home, "py"), prefix)

	tier := newTier(t, local.Options{Python: filepath.Join(home, "py", "bin", "python3"), Warm: -1})
	tiertest.Require(t, local.Name, tier.Probe(t.Context()))
	r := run(t, box(t, tier, tiers.Config{}), "import sys, json\nprint(sys.prefix)")
	if strings.TrimSpace(r.Stdout) != prefix {
		t.Errorf("it runs the Python of %q, want %q", r.Stdout, prefix)
	}
}

func TestAVirtualEnvironmentShowsItsPackagesOnly(t *testing.T) {
	home := homeOf(t, "project/.env", "project/.git/config", "project/venv/secret/key")
	python, packages := makeVenv(t, filepath.Join(home, "project", "venv"))
	writeModule(t, filepath.Join(packages, "installed.py"))

	tier := newTier(t, local.Options{Python: python, Warm: -1})
	got := seen(t, tier, python, home, "project/.env", "project/.git/config",
		"project/venv/secret/key", "project/venv/bin/activate", "installed")
	expectSeen(t, got, "installed")
}

func writeModule(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x = 1\n"), 0o644); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
}

// TestAnEditableInstallIsHidden checks that the folder of an editable install, which is on sys.path
// but is a project and not a library, is hidden. The tier does not offer its modules, so a router
// looks for them elsewhere.
func TestAnEditableInstallIsHidden(t *testing.T) {
	home := homeOf(t, "project/.env", "other/src/README")
	python, packages := makeVenv(t, filepath.Join(home, "venv"))
	project, source := filepath.Join(home, "project"), filepath.Join(home, "other", "src")
	writeModule(t, filepath.Join(project, "edited.py"))
	writeModule(t, filepath.Join(source, "sourced.py"))
	lines := []byte(project + "\n" + source + "\n")
	//nolint:gosec // the guest's user may read it
	if err := os.WriteFile(filepath.Join(packages, "all.pth"), lines, 0o644); err != nil {
		t.Fatal(err)
	}

	tier := newTier(t, local.Options{Python: python, Warm: -1})
	got := seen(t, tier, python, home, "project/.env", "edited", "sourced", "json")
	expectSeen(t, got, "json")
	info := tier.Info()
	if info.Modules["edited"] || info.Modules["sourced"] || !info.Modules["json"] {
		t.Error("it offers the modules of hidden folders, or not those of others")
	}
	if all := strings.Join(info.Hidden, "\n"); !strings.Contains(all, project+": ") ||
		!strings.Contains(all, "--local-folder") {
		t.Errorf("it hides %q", all)
	}

	named := newTier(t, local.Options{Python: python, Folders: []string{source}, Warm: -1})
	expectSeen(t, seen(t, named, python, home, "project/.env", "edited", "sourced"), "sourced")
	if !named.Info().Modules["sourced"] || !slices.Contains(named.Info().Shown, source) {
		t.Error("it does not offer the modules of a named folder")
	}
}

// TestANamedFolderMayHoldNoSecrets checks that a named folder with a secret is an error that names
// the secret.
func TestANamedFolderMayHoldNoSecrets(t *testing.T) {
	home := homeOf(t, "a/.env", "b/deep/er/.git/config", "c/server.pem", "d/tests/server.pem")
	for folder, want := range map[string]string{
		"": home, "a": "a/.env", "b": "b/deep/er/.git", "c": "c/server.pem", "d": "",
		"missing": "no such file",
	} {
		t.Run(folder, func(t *testing.T) {
			tier := newTier(t, local.Options{
				Python: systemPython, Folders: []string{filepath.Join(home, folder)}, Warm: -1,
			})
			err := tier.Probe(t.Context())
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, not %q", folder, err, want)
			}
		})
	}
}

// TestAHomeCanBeAPrefix checks an interpreter installed as by `make install` with --prefix=$HOME.
func TestAHomeCanBeAPrefix(t *testing.T) {
	home := homeOf(t, ".ssh/id_rsa", "lib/private/notes", "bin/token")
	target, err := filepath.EvalSymlinks(systemPython)
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(home, "bin", filepath.Base(target))
	data, err := os.ReadFile(target)
	if err == nil {
		err = os.WriteFile(python, data, 0o755) //nolint:gosec // the guest runs it
	}
	if err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join(home, "lib", filepath.Base(target)), "/usr/lib/"+filepath.Base(target))

	tier := newTier(t, local.Options{Python: python, Warm: -1})
	got := seen(t, tier, python, home, ".ssh/id_rsa", "lib/private/notes", "bin/token", "json")
	expectSeen(t, got, "json")
}

// TestSecretsAmongPackagesHideThem checks that a site-packages with secrets, here of a project that
// was cloned into it, is hidden.
func TestSecretsAmongPackagesHideThem(t *testing.T) {
	home := homeOf(t)
	python, packages := makeVenv(t, filepath.Join(home, "venv"))
	writeModule(t, filepath.Join(packages, "installed.py"))
	inner, err := filepath.Rel(home, filepath.Join(packages, "cloned", ".git", "config"))
	if err == nil {
		err = os.MkdirAll(filepath.Join(packages, "cloned", ".git"), 0o755) //nolint:gosec // as above
	}
	if err != nil {
		t.Fatal(err)
	}
	writeModule(t, filepath.Join(home, inner))

	tier := newTier(t, local.Options{Python: python, Warm: -1})
	expectSeen(t, seen(t, tier, python, home, inner, "installed", "json"), "json")
	if tier.Info().Modules["installed"] {
		t.Error("it offers modules of a hidden folder")
	}
}

// TestABuildShowsWhatItNeeds checks an interpreter that was not installed: the jail shows its
// modules, but not the other files of its source tree.
func TestABuildShowsWhatItNeeds(t *testing.T) {
	python := os.Getenv("RLM_PYTHON")
	folder := filepath.Dir(python)
	if _, err := os.Stat(filepath.Join(folder, "pybuilddir.txt")); err != nil {
		t.Skip("RLM_PYTHON is not a build")
	}
	tier := newTier(t, local.Options{Python: python, Warm: -1})
	got := seen(t, tier, python, folder, "./Makefile", "./pyconfig.h", "math", "json")
	expectSeen(t, got, "math", "json")
}

// TestTheFirstSandboxSaysWhatItShows checks that the note comes before a snippet can read the
// files, and only once.
func TestTheFirstSandboxSaysWhatItShows(t *testing.T) {
	needCommonPython(t)
	var notes []string
	tier := newTier(t, local.Options{
		Python: systemPython, Warm: -1,
		Progress: func(what string) { notes = append(notes, what) },
	})
	tiertest.Require(t, local.Name, tier.Probe(t.Context()))
	box(t, tier, tiers.Config{})
	box(t, tier, tiers.Config{})
	if len(notes) != 1 || !strings.HasSuffix(notes[0], "the system's folders") {
		t.Errorf("%q", notes)
	}
}
