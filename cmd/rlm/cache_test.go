package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestTheFirstRunSaysWhatItPrepares checks what the first run prints. It prepares nothing if the
// program contains the image of this version of the Python runtime.
func TestTheFirstRunSaysWhatItPrepares(t *testing.T) {
	needCache(t)
	out, _ := fillCache() // needCache has reported the error
	if len(out) > 0 && !strings.HasPrefix(string(out), "rlm: preparing ") {
		t.Errorf("the first run prints %q", out)
	}
	if out := quick(t, os.Getenv(cacheVariable)); out != "" {
		t.Errorf("a later run prints %q on stderr", out)
	}
}

// TestAnAttachedInterpreterNeedsNoCache checks that a program from `make build` on Linux writes
// nothing into the cache.
func TestAnAttachedInterpreterNeedsNoCache(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("make build attaches the interpreter on Linux only")
	}
	dir := filepath.Join(t.TempDir(), "cache")
	out, err := exec.CommandContext(
		t.Context(), "rlm", "exec", "--cache-dir", dir, "-c", "print(1 + 1)",
	).CombinedOutput()
	if err != nil || string(out) != "2\n" {
		t.Fatalf("it prints %q (%v)", out, err)
	}
	if files, err := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("it writes %v into the cache (%v)", files, err)
	}
}

// TestAnAttachedModuleIsNotCompiled checks the first run with a document, a table and a graph, each
// with an empty cache.
func TestAnAttachedModuleIsNotCompiled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("make build attaches the modules on Linux only")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.rtf": `{\rtf1 hello}`, "a.parquet": "PAR1 but damaged PAR1",
		"nodes.csv": "id:ID,name,:LABEL\n1,ann,Person\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for _, input := range [][]string{{"--context", "a.rtf"}, {"--context", "a.parquet"}, {"--graph", "nodes.csv"}} {
		t.Run(input[1], func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			args := append([]string{"exec", "--cache-dir", cache, "-c", "print(7)"}, input...)
			cmd := exec.CommandContext(t.Context(), "rlm", args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "7\n") {
				t.Fatalf("it prints %q (%v)", out, err)
			}
			if strings.Contains(string(out), "preparing") {
				t.Errorf("it compiles the module: %s", out)
			}
		})
	}
}

func TestTheCacheBelongsToTheUserAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	needCache(t)
	dir := filepath.Join(os.Getenv(cacheVariable), "image")
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("%s has mode %v, want 0700", filepath.Base(dir), info.Mode().Perm())
	}
}

func TestADamagedImageIsMadeAnew(t *testing.T) {
	needCache(t)
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.CopyFS(dir, os.DirFS(os.Getenv(cacheVariable))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "key"), 0o600); err != nil { // CopyFS has opened it
		t.Fatal(err)
	}
	images, err := filepath.Glob(filepath.Join(dir, "image", "*"))
	if err != nil || len(images) == 0 {
		t.Fatalf("there is no image in the cache (%v)", err)
	}
	for _, image := range images {
		if err := os.Truncate(image, 20<<10); err != nil {
			t.Fatal(err)
		}
	}
	if out := quick(t, dir); !strings.Contains(out, "a cached file is not used") {
		t.Errorf("with a damaged image it prints %q on stderr", out)
	}
	if out := quick(t, dir); out != "" {
		t.Errorf("after that it prints %q on stderr", out)
	}
}

// quick makes the bare program run a snippet that must print 2, and returns its stderr.
func quick(t *testing.T, cache string) string {
	t.Helper()
	cmd := bareProgram("exec", "--cache-dir", cache, "-c", "print(1 + 1)")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || string(out) != "2\n" {
		t.Fatalf("it prints %q (%v)\n%s", out, err, &stderr)
	}
	return stderr.String()
}
