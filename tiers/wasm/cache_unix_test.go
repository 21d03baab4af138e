//go:build unix

package wasm_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// ordinaryUser is "nobody" on most systems.
const ordinaryUser = 65534

// asOrdinaryUser reports whether the test runs as a user to whom file modes apply. For root, it
// reruns the test as such a user, and reports false.
func asOrdinaryUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	//nolint:usetesting // the folder of this user is closed to others
	dir, err := os.MkdirTemp("", "rlm-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	home, program := filepath.Join(dir, "home"), filepath.Join(dir, "wasm.test")
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	this, err := os.ReadFile(path)
	err = errors.Join(
		err, os.Chmod(dir, 0o755), os.WriteFile(program, this, 0o755),
		os.Mkdir(home, 0o700), os.Chown(home, ordinaryUser, ordinaryUser),
	)
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser},
	}
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "--- PASS") {
		t.Errorf("as an ordinary user: %v\n%s", err, said)
	}
	return false
}

// TestReadOnlyCache checks that the contents of a read-only cache are used, and that each process
// replaces damaged files in memory.
func TestReadOnlyCache(t *testing.T) {
	skip.Short(t, "it compiles the interpreter again")
	skip.UnderRace(t)
	if !asOrdinaryUser(t) {
		return
	}
	dir := filepath.Join(t.TempDir(), "cache")
	check(t, dir)
	image, code := cachedFile(t, dir, "image"), cachedFile(t, dir, "code")
	folders := []string{dir, filepath.Dir(image), filepath.Dir(code)}
	for _, folder := range folders {
		if err := os.Chmod(folder, 0o500); err != nil { //nolint:gosec // a folder
			t.Fatal(err)
		}
		//nolint:gosec // a folder, for its removal
		t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
	}

	if prepared, logged := check(t, dir); prepared || logged != "" {
		t.Errorf("prepared: %v, log: %s", prepared, logged)
	}
	for range 2 {
		if err := os.WriteFile(image, []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
		if prepared, logged := check(t, dir); !prepared || !strings.Contains(logged, "cannot cache") {
			t.Errorf("prepared: %v, log: %s", prepared, logged)
		}
	}
}

// TestUnreadableKey checks that a cache whose key belongs to someone else is rejected.
func TestUnreadableKey(t *testing.T) {
	if !asOrdinaryUser(t) {
		return
	}
	dir := filepath.Join(t.TempDir(), "cache")
	if err := plant(filepath.Join(dir, "key"), 0); err != nil {
		t.Fatal(err)
	}
	tier := wasm.New(wasm.Options{CacheDir: dir})
	defer tier.Close()
	for _, err := range []error{codecache.Check(dir), tier.Warm(context.Background())} {
		if err == nil || !strings.Contains(err.Error(), "name an empty directory of your own") ||
			strings.Contains(err.Error(), "chmod") {
			t.Errorf("got %v", err)
		}
	}
}
