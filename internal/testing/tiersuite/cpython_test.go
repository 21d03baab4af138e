package tiersuite

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

var update = flag.Bool("update", false, "write the golden files from what CPython prints")

// ran is CPython's result for a script.
type ran struct {
	stdout, stderr string
	code           int
}

// runScript runs a case as a script and replaces its path by the snippet's name.
func runScript(t *testing.T, python, dir, name string) ran {
	t.Helper()
	file := filepath.Join(dir, name+".py")
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}

	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, "-I", "-X", "utf8", path)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PYENV_VERSION=" + os.Getenv("PYENV_VERSION")}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("cannot run %s: %v", python, err)
	}

	rename := strings.NewReplacer(path, "<snippet 1>")
	return ran{rename.Replace(stdout.String()), rename.Replace(stderr.String()), cmd.ProcessState.ExitCode()}
}

// compareGolden compares a string with a file, or writes the file.
func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	compare(t, filepath.Base(file), got, readFixture(t, filepath.ToSlash(file)))
}

func TestLanguageOnCPython(t *testing.T) { testOnCPython(t, langDir) }

// TestMovesOnCPython runs the snippets of the tests of moves as one script.
func TestMovesOnCPython(t *testing.T) { testOnCPython(t, moveDir) }

func TestFilesOnCPython(t *testing.T) { testOnCPython(t, outDir) }

func testOnCPython(t *testing.T, dir string) {
	python := skip.WithoutCPython(t)
	for _, name := range listCases(t, dir) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runScript(t, python, dir, name)
			if r.code != 0 {
				t.Fatalf("exit code %d\n%s", r.code, r.stderr)
			}
			compareGolden(t, filepath.Join(dir, name+".stdout"), r.stdout)
		})
	}
}

func TestTracebacksOnCPython(t *testing.T) {
	python := skip.WithoutCPython(t)
	for _, name := range listCases(t, raiseDir) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runScript(t, python, raiseDir, name)
			if code, exits := exitCodes[name]; exits && r.code != code || !exits && r.code == 0 {
				t.Fatalf("exit code %d\n%s", r.code, r.stderr)
			}
			compareGolden(t, filepath.Join(raiseDir, name+".stderr"), hideDepth(r.stderr))
			compareGolden(t, filepath.Join(raiseDir, name+".stdout"), r.stdout)
		})
	}
}

// TestCasesAreDeterministic runs each script twice. The hashes of strings differ between processes,
// which reveals cases that depend on hashes.
func TestCasesAreDeterministic(t *testing.T) {
	python := skip.WithoutCPython(t)
	for _, name := range listCases(t, langDir) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := runScript(t, python, langDir, name), runScript(t, python, langDir, name)
			compare(t, "the second run's stdout", b.stdout, a.stdout)
		})
	}
}

// TestCasesAreCases checks that every script has its golden files, and every golden file its
// script.
func TestCasesAreCases(t *testing.T) {
	for dir, suffixes := range map[string][]string{
		langDir: {".stdout"}, moveDir: {".stdout"},
		raiseDir: {".stdout", ".stderr"},
	} {
		t.Run(fmt.Sprintf("%.60s", dir), func(t *testing.T) {
			names := map[string]bool{}
			for _, name := range listCases(t, dir) {
				names[name] = true
				for _, suffix := range suffixes {
					readFixture(t, dir+"/"+name+suffix)
				}
			}

			entries, err := testdata.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if name, _, _ := strings.Cut(e.Name(), "."); !names[name] {
					t.Errorf("%s/%s belongs to no script", dir, e.Name())
				}
			}
		})
	}
}
