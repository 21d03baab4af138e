package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/testing/mcptest"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
	"github.com/rlmhq/rlm/tiers/local"
)

// TestMain builds rlm as it is shipped, and lets this test program act as the other commands that
// the scripts need. It builds rlm without the race detector, with which each start would take ten
// times as long; the tests of rlm's packages use the detector.
func TestMain(m *testing.M) {
	testscript.Main(withProgram{m}, map[string]func(){
		"rlmnotes":  rlmNotes,
		"rlmkilled": rlmKilled,
		"exits":     exits,
		"mktext":    mktext,
		"mcpserver": func() { mcptest.Serve(os.Args[1]) },
	})
}

// rlmNotes is rlm with a host function note(text), which adds a line to the file
// notes, so that a script can count the calls.
func rlmNotes() {
	const name = "notes"
	note := func(_ context.Context, call tiers.Call) (tiers.Value, error) {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		_, err = fmt.Fprintf(f, "%s\n", call.Args[0])
		return tiers.Value(fmt.Sprintf(`"noted %d"`, call.Snippet)), errors.Join(err, f.Close())
	}
	functions = []rlm.Function{rlm.Func("note", "note(text): keep a line", note)}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

const cacheVariable = "RLM_CACHE_DIR"

// stateVariable names the folder for state, where runs are kept. Tests do not touch the user's
// folder.
const stateVariable = "XDG_STATE_HOME"

// withProgram puts rlm on the PATH, and gives all runs one cache directory, so that the interpreter
// is compiled only once.
type withProgram struct{ *testing.M }

// Run runs the tests.
func (m withProgram) Run() int {
	if slices.Contains(os.Args, "-test.fuzzworker") {
		return m.M.Run() // it starts no programs
	}
	dir, err := os.MkdirTemp("", "rlm-test-")
	if err != nil {
		log.Printf("cannot make a directory: %v", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := buildProgram(dir); err != nil {
		log.Printf("cannot build rlm: %v", err)
		return 1
	}
	for name, value := range map[string]string{
		cacheVariable: filepath.Join(dir, "cache"), stateVariable: filepath.Join(dir, "state"),
		"PATH": dir + string(os.PathListSeparator) + os.Getenv("PATH"),
	} {
		if err := os.Setenv(name, value); err != nil {
			log.Printf("cannot set %s: %v", name, err)
			return 1
		}
	}
	linkPython(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // jails run the program as other users
		log.Printf("cannot open the directory: %v", err)
		return 1
	}
	return m.M.Run()
}

// linkPython puts a link to the real python3 first on the PATH. A version manager's python3 is a
// script that takes a second to start.
func linkPython(dir string) {
	path, err := exec.Command("python3", "-I", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return // without Python, tests that need it report that
	}
	if err := os.Symlink(strings.TrimSpace(string(path)), filepath.Join(dir, "python3")); err != nil {
		log.Printf("python3 is the one on the PATH: %v", err)
	}
}

// bareFolder contains rlm as `go install` builds it. The rlm on the PATH is built by `make build`,
// and contains the prepared interpreter on some systems.
const bareFolder = "bare"

func buildProgram(dir string) error {
	name := "rlm" + exeSuffix()
	bare, program := filepath.Join(dir, bareFolder, name), filepath.Join(dir, name)
	if err := goTool("build", "-ldflags", "-s -w -X main.linked=v1.2.3-test", "-o", bare, "."); err != nil {
		return err
	}
	if err := os.Link(bare, program); err != nil {
		return err
	}
	// The program attach replaces the file, and keeps compiled modules in the cache that all tests
	// share.
	if err := os.Setenv(cacheVariable, testcache.Dir()); err != nil {
		return err
	}
	return goTool("run", "-C", "../../scripts", "./attach", program)
}

func goTool(args ...string) error {
	tool := exec.Command("go", args...)
	tool.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := tool.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
	}
	return nil
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// fillCache prepares the interpreter before the tests do so concurrently.
var fillCache = sync.OnceValues(func() ([]byte, error) {
	return bareProgram("exec", "-c", "None").CombinedOutput()
})

// bareProgram returns a command of the rlm that contains no prepared interpreter.
func bareProgram(args ...string) *exec.Cmd {
	dir := filepath.Dir(os.Getenv(cacheVariable))
	return exec.Command(filepath.Join(dir, bareFolder, "rlm"+exeSuffix()), args...)
}

func needCache(t *testing.T) {
	t.Helper()
	if out, err := fillCache(); err != nil {
		t.Fatalf("rlm does not run: %v\n%s", err, out)
	}
}

// TestScripts runs the scripts. They start rlm as it is shipped, without the race detector, so it
// is enough that make test runs them, and make unraced the slow ones.
func TestScripts(t *testing.T) {
	skip.UnderRace(t)
	needCache(t)
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if skip.Quick() {
		files = slices.DeleteFunc(files, func(name string) bool { return !isSlow(t, name) })
	}
	testscript.Run(t, testscript.Params{
		Files:              files,
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv(cacheVariable, os.Getenv(cacheVariable))
			e.Setenv(stateVariable, filepath.Join(e.WorkDir, ".state"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home")) // the default, /no-home, exists once root has run it
			examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
			e.Setenv("EXAMPLES", examples)
			return err
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "unreadable":
				return os.Getuid() > 0, nil // root reads everything; Windows has no user number
			case "local":
				return localWorks(), nil
			case "docker":
				return dockerWorks(tiers.Python), nil
			case "docker-go":
				return dockerWorks(tiers.Go), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"jsonget":   jsonget,
			"jsonkeep":  jsonkeep,
			"damage":    damageLargest,
			"size":      size,
			"crlf":      crlf,
			"manyfiles": manyfiles,
			"fuel":      fuel,
			"venv":      venv,
			"rlm":       program,
			"serve":     serve,
			"modellist": modelList,
			"mode":      mode,
			"receive":   receive,
			"spans":     spans,
			"tree":      tree,
			"index":     index,
			"newimage":  newImage,
			"files":     serveFiles,
		},
	})
}

// isSlow reports whether make test skips a script, or a part of it.
func isSlow(t *testing.T, name string) bool {
	t.Helper()
	script, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(script, []byte("[short]")) || bytes.Contains(script, []byte("docker]"))
}

// exits is the command `exits CODE rlm ARGUMENT...`. rlm must end with CODE.
func exits() {
	log.SetFlags(0)
	if len(os.Args) < 3 || os.Args[2] != "rlm" {
		log.Fatal("usage: exits CODE rlm ARGUMENT...")
	}
	want, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatalf("exits: %v", err)
	}
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		log.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		log.Fatalf("exit code %d, want %d", got, want)
	}
}

// command returns rlm with arguments, to be started in a directory, as a user would start it.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	needCache(t)
	cmd := exec.CommandContext(t.Context(), "rlm", args...)
	cmd.Dir = dir
	return cmd
}

// write creates a file in a new directory and returns its path.
func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// localWorks reports whether tier local is usable here. Where it is required, the scripts always
// run, and fail if it is not usable.
func localWorks() bool {
	if strings.Contains(os.Getenv("RLM_REQUIRE_TIERS"), "local") {
		return true
	}
	return local.New(local.Options{Python: localPython()}).Probe(context.Background()) == nil
}

// dockerWorks reports whether tier docker runs a language here. It treats a required tier as
// localWorks does.
func dockerWorks(language tiers.Language) bool {
	if strings.Contains(os.Getenv("RLM_REQUIRE_TIERS"), "docker") {
		return true
	}
	tier := docker.New(docker.Options{Host: wiring.DockerHost()})
	return tier.Probe(context.Background()) == nil && tier.Info().Lacks[language] == ""
}

// localPython returns the interpreter for the scripts' virtual environment.
func localPython() string {
	if name := os.Getenv("RLM_LOCAL_PYTHON"); name != "" {
		return name
	}
	return "python3"
}
