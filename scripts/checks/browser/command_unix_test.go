//go:build unix

package browser_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/scripts/checks/browser"
)

// interrupted is the exit code of a command that shows a run whose process has ended.
const interrupted = 130

// buildProgram builds rlm as `go install` does.
func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "rlm")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../../..", "-o", program, "./cmd/rlm")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build rlm: %v\n%s", err, out)
	}
	return program
}

// exitCodeOf waits for a started command and returns its exit code.
func exitCodeOf(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// watchedRun is a run whose second turn waits for the test.
type watchedRun struct {
	t              *testing.T
	program, dir   string
	server         *llmtest.Server
	asked, release chan struct{}
}

func newWatchedRun(t *testing.T) *watchedRun {
	t.Helper()
	w := &watchedRun{
		t: t, program: buildProgram(t), dir: t.TempDir(),
		asked: make(chan struct{}, 8), release: make(chan struct{}),
	}
	if err := os.WriteFile(filepath.Join(w.dir, "t.txt"), []byte("a needle"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.server = llmtest.Start(func(r llm.Request) (llm.Response, error) {
		switch {
		case r.Messages[0].Role != llm.RoleSystem:
			return llm.Response{Text: "yes, it is"}, nil
		case len(r.Messages) == 2:
			return llm.Response{Text: "```repl\nprint('saw', llm_query('is it there?'))\n```"}, nil
		}
		w.asked <- struct{}{}
		select {
		case <-w.release:
		case <-t.Context().Done(): // the test has failed, and the server waits for this answer
		}
		return llm.Response{Text: "```repl\nFINAL('found')\n```"}, nil
	})
	t.Cleanup(w.server.Close)
	return w
}

// start starts a command in the folder of the run, with its store.
func (w *watchedRun) start(args ...string) (cmd *exec.Cmd, stdout *bufio.Reader) {
	w.t.Helper()
	cmd = exec.CommandContext(w.t.Context(), w.program, append(args, "--store", "store")...)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), "XDG_CACHE_HOME="+testcache.Home())
	for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_API_KEY"} {
		cmd.Env = append(cmd.Env, name+"="+w.server.Env(name))
	}
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return cmd, bufio.NewReader(pipe)
}

// begin begins or continues the run, and returns when its second turn waits.
func (w *watchedRun) begin() *exec.Cmd {
	w.t.Helper()
	cmd, _ := w.start("run", "where is it?", "--name", "watched", "--context", "t.txt", "--model", "openai/any",
		"--bypass", "0", "--quiet")
	<-w.asked
	return cmd
}

// follow follows the run until a line, and returns a function that awaits the end.
func (w *watchedRun) follow(until string) (end func(code int, last string)) {
	w.t.Helper()
	cmd, out := w.start("runs", "show", "watched", "-f")
	lines := ""
	read := func(until string) {
		w.t.Helper()
		for !strings.Contains(lines, until) {
			line, err := out.ReadString('\n')
			if lines += line; err != nil {
				w.t.Fatalf("%v: %q has no %q", err, lines, until)
			}
		}
	}
	read(until)
	return func(code int, last string) {
		w.t.Helper()
		read(last)
		if got := exitCodeOf(w.t, cmd); got != code {
			w.t.Errorf("it ends with %d, want %d:\n%s", got, code, lines)
		}
	}
}

// TestARunOfAnotherProcessIsWatched kills the run's process. Another process then continues and
// ends the run.
func TestARunOfAnotherProcessIsWatched(t *testing.T) {
	w := newWatchedRun(t)
	first := w.begin()
	viewer, out := w.start("view", "watched")
	address, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	const rows = `[...document.querySelectorAll('.row:not([hidden])')]` +
		`.map((r) => r.querySelector('.kind').textContent + r.querySelector('.title').textContent).join('|')`
	status := func(want string) string {
		return `document.getElementById('status').textContent === '` + want + `'`
	}
	p := browser.Open(t)
	p.Do(chromedp.Navigate(strings.TrimSpace(address)))
	p.Wait(status("running"))
	p.Wait(rows + `.includes('is it there?')`)
	p.Wait(rows + `.includes('turn, running: Turn 2')`)
	end := w.follow("turn 2/root 1 begins: ")

	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	p.Wait(status("interrupted"))
	end(interrupted, "turn 1 is kept\n")

	second := w.begin()
	p.Wait(status("running"))
	end = w.follow("turn 2/root 1 begins: ")
	close(w.release)
	p.Wait(status("answered"))
	p.Wait(rows + `.includes("FINAL('found')")`)
	end(0, "watched: answered\n")
	if code := exitCodeOf(t, second); code != 0 {
		t.Errorf("the run ends with %d", code)
	}
	if err := viewer.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCodeOf(t, viewer); code != 0 {
		t.Errorf("the viewer ends with %d", code)
	}
}
