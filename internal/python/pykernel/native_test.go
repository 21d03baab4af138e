package pykernel

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// TestCompile checks that the result contains the code of each module, under the name that a
// traceback shows.
func TestCompile(t *testing.T) {
	python := skip.WithoutCPython(t)
	compiled, err := Compile(exec.CommandContext(t.Context(), python))
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), python, "-c", "import marshal, sys\n"+
		"for code in marshal.load(sys.stdin.buffer).values(): print(code.co_filename)")
	cmd.Stdin = bytes.NewReader(compiled)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), "\n"); n != len(Sources()) {
		t.Errorf("%d modules, want %d", n, len(Sources()))
	}
	if want := "<rlm boot.py, as importlib._bootstrap>\n"; !strings.Contains(string(out), want) {
		t.Errorf("no %s in:\n%s", want, out)
	}
}

func TestCompileNamesTheInterpreter(t *testing.T) {
	_, err := Compile(exec.CommandContext(t.Context(), "/bin/false"))
	if err == nil || !strings.Contains(err.Error(), "with /bin/false: exit status 1") {
		t.Error(err)
	}
}

// TestInterruptsHarmNoConnection checks that a connection survives an interrupt of each request at
// every point where CPython may be interrupted: see testdata/interrupts.py.
func TestInterruptsHarmNoConnection(t *testing.T) {
	python := skip.WithoutCPython(t)
	cmd := exec.CommandContext(t.Context(), python, "testdata/interrupts.py", "native/native.py")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
