//go:build !race

// With the race detector, the whole standard library would be recompiled, and races in the bare
// interpreters are not our concern.

package hostile

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-python/gpython/py"
	_ "github.com/go-python/gpython/stdlib" // all modules of gpython
	"github.com/traefik/yaegi/interp"
	"github.com/traefik/yaegi/stdlib"
	"github.com/traefik/yaegi/stdlib/syscall"
	"github.com/traefik/yaegi/stdlib/unrestricted"
	"github.com/traefik/yaegi/stdlib/unsafe"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// bareEnv is set in a process that runs a snippet in a bare interpreter: "go" or "python". The
// snippet is on its standard input.
const bareEnv = "RLM_BARE"

func TestMain(m *testing.M) {
	if language := os.Getenv(bareEnv); language != "" {
		bare(language)
	}
	os.Exit(m.Run())
}

// bare runs a snippet, then reports any changes that it finds in its own process.
func bare(language string) {
	source, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(7)
	}
	run := map[string]func(string) error{"go": bareGo, "python": barePython}[language]
	alone = runtime.NumGoroutine()
	fmt.Print(harm.Begun)
	if err := run(string(source)); err != nil {
		fmt.Println("it raises", err)
	}
	findings()
	os.Exit(0)
}

// bareGo runs a snippet in yaegi with everything that it can provide.
func bareGo(source string) error {
	in := interp.New(interp.Options{GoPath: "gopath", Unrestricted: true})
	for _, symbols := range []interp.Exports{
		stdlib.Symbols, interp.Symbols, syscall.Symbols,
		unrestricted.Symbols, unsafe.Symbols,
	} {
		if err := in.Use(symbols); err != nil {
			return err
		}
	}
	_, err := in.Eval("func Query(s string) (string, error) { return \"the host's\", nil }")
	if err != nil {
		return err
	}
	var failed error
	for _, part := range parts(source) {
		if _, failed = in.Eval(part); failed != nil {
			break
		}
	}
	answer, err := in.Eval("a, _ := Query(\"q\"); a")
	if err == nil && answer.String() != "the host's" {
		fmt.Println("a host call is answered by the snippet")
	}
	return failed
}

var declares = regexp.MustCompile(`^(func|var|const|//|\n)`)

// parts divides a snippet as yaegi requires, with declarations separate from the statements.
func parts(source string) []string {
	var imports, declarations, rest string
	group := false
	for line := range strings.Lines(source) {
		switch {
		case group || strings.HasPrefix(line, "import "):
			imports += line
			group = line == "import (\n" || group && line != ")\n"
		case rest == "" && declares.MatchString(line):
			declarations += line
		default:
			rest += line
		}
	}
	return []string{imports, declarations, rest}
}

// barePython runs a snippet in unmodified gpython.
func barePython(source string) error {
	ctx := py.NewContext(py.DefaultContextOpts())
	defer ctx.Close()
	code, err := py.Compile(source+"\n", "<snippet>", py.ExecMode, 0, true)
	if err == nil {
		_, err = py.RunCode(ctx, code, "", nil)
	}
	return err
}

// findings reports what the snippet has changed in this process.
func findings() {
	if io.EOF == nil {
		fmt.Println("io.EOF is nil")
	}
	if unicode.Latin == nil {
		fmt.Println("unicode.Latin is nil")
	}
	func() {
		defer func() {
			if recover() != nil {
				fmt.Println("base64 is broken")
			}
		}()
		if base64.StdEncoding.EncodeToString([]byte("hello")) != "aGVsbG8=" {
			fmt.Println("base64 is broken")
		}
	}()
	if n := runtime.NumGoroutine(); n > 1000 {
		fmt.Println("goroutines stay")
	}
	for range 100 { // a busy machine starts them late
		if strings.Contains(string(stacks()), "interp.runCfg") {
			fmt.Println("goroutines stay busy")
			return
		}
		if n := runtime.NumGoroutine(); n <= alone || n > 1000 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// alone is the number of goroutines when a snippet begins.
var alone int

// stacks returns the stacks of all goroutines.
func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}

// TestSnippetsHarmABareInterpreter is the negative control of the attacks: without the tier's
// checks, its jail and its limits, each attack does its harm.
func TestSnippetsHarmABareInterpreter(t *testing.T) {
	skip.Short(t, "it starts a process for each attack")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Snippets {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			dir := host(t)
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(filled(t, s.Source))
			cmd.Env = []string{
				bareEnv + "=" + string(s.Language()), "ZONEINFO=" + dir, "RLM_SECRET=" + Secret,
				"PATH=/usr/bin:/bin", "GOTRACEBACK=none",
			}
			wall := 30 * time.Second // ample for a snippet that ends by itself
			want := harm.Kind(s.Harm)
			if s.Harm == Deadlocks {
				want = harm.Hangs
			}
			if s.Truth == "" && harm.Alike(want, harm.Hangs) {
				wall = time.Second
			}
			kind, said := harm.Watch(t, cmd, wall)
			switch {
			case s.Truth != "": // its output differs
				if kind != harm.None || said == s.Truth {
					t.Errorf("it does %q and says %q", kind, said)
				}
			case s.Harm == "" || !harm.Alike(kind, want) && !strings.Contains(said, s.Harm):
				t.Errorf("it does %q, not %q: %.1000s", kind, s.Harm, said)
			}
		})
	}
}

// host creates a folder with files that a snippet may look for on a host.
func host(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	zone := append(
		[]byte("TZif\x00"),
		make([]byte, 15)...) // the smallest possible: no changes, one type
	for _, n := range []uint32{0, 0, 0, 0, 1, 4} {
		zone = binary.BigEndian.AppendUint32(zone, n)
	}
	zone = append(zone, make([]byte, 6)...)
	zone = append(zone, "LMT\x00"...)
	source := "package %s\n\nfunc init() { println(%q) }\n"
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "gopath", "src", "own"), 0o755),
		os.MkdirAll(filepath.Join(dir, "x"), 0o755),
	)
	for name, data := range map[string]string{
		"secret": Secret, "Zone": string(zone), "x/x.go": fmt.Sprintf(source, "x", Secret),
		"gopath/src/own/own.go": fmt.Sprintf(source, "own", Secret),
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// filled inserts the port of a server on the host and the process of a victim into a snippet.
func filled(t *testing.T, source string) string {
	t.Helper()
	if strings.Contains(source, "PORT") {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		source = strings.ReplaceAll(source, "PORT", l.Addr().String())
	}
	if strings.Contains(source, "VICTIM") {
		victim := exec.CommandContext(t.Context(), "sleep", "600")
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = victim.Process.Kill(), victim.Wait() })
		source = strings.ReplaceAll(source, "VICTIM", fmt.Sprint(victim.Process.Pid))
	}
	return source
}
