package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test program answer as rlm, too, and as the commands that
// the scripts need beside it.
func TestMain(m *testing.M) {
	testscript.Main(withCache{m}, map[string]func(){
		"rlm":    func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"exits":  exits,
		"mktext": mktext,
	})
}

const cacheVariable = "RLM_CACHE_DIR"

// withCache gives all that runs one cache directory: the interpreter is compiled
// once, not once for each command.
type withCache struct{ *testing.M }

// Run runs the tests.
func (m withCache) Run() int {
	dir, err := os.MkdirTemp("", "rlm-cache-")
	if err != nil {
		log.Printf("cannot make a cache directory: %v", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv(cacheVariable, dir); err != nil {
		log.Printf("cannot set %s: %v", cacheVariable, err)
		return 1
	}
	return m.M.Run()
}

// fillCache compiles before the tests do so at the same time.
var fillCache = sync.OnceValues(func() ([]byte, error) {
	return exec.Command("rlm", "exec", "-c", "None").CombinedOutput()
})

func needCache(t *testing.T) {
	t.Helper()
	if out, err := fillCache(); err != nil {
		t.Fatalf("rlm does not run: %v\n%s", err, out)
	}
}

func TestScripts(t *testing.T) {
	needCache(t)
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv(cacheVariable, os.Getenv(cacheVariable))
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "unreadable" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return os.Getuid() > 0, nil // root reads everything; Windows has no user number
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"jsonget":   jsonget,
			"size":      size,
			"crlf":      crlf,
			"manyfiles": manyfiles,
			"fuel":      fuel,
		},
	})
}

// exits is the command `exits CODE rlm ARGUMENT...`: rlm must end with CODE.
func exits() {
	log.SetFlags(0)
	if len(os.Args) < 3 || os.Args[2] != "rlm" {
		log.Fatal("usage: exits CODE rlm ARGUMENT...")
	}
	want, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatalf("exits: %v", err)
	}
	if got := run(context.Background(), os.Args[3:], os.Stdin, os.Stdout, os.Stderr); got != want {
		log.Fatalf("exit code %d, want %d", got, want)
	}
}

// command is rlm with arguments, to be started in a directory, as a user would.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	needCache(t)
	cmd := exec.CommandContext(t.Context(), "rlm", args...)
	cmd.Dir = dir
	return cmd
}

// write makes a file in a new directory and returns its path.
func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
