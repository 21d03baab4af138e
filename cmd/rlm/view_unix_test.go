//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/testing/browser"
	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/llm"
)

// watchedRun is a run whose second turn waits for the test.
type watchedRun struct {
	t              *testing.T
	dir            string
	server         *llmtest.Server
	asked, release chan struct{}
}

func newWatchedRun(t *testing.T) *watchedRun {
	t.Helper()
	needCache(t)
	w := &watchedRun{t: t, dir: t.TempDir(), asked: make(chan struct{}, 8), release: make(chan struct{})}
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
		<-w.release
		return llm.Response{Text: "```repl\nFINAL('found')\n```"}, nil
	})
	t.Cleanup(w.server.Close)
	return w
}

// start starts a command in the folder of the run, with its store.
func (w *watchedRun) start(args ...string) (cmd *exec.Cmd, stdout *bufio.Reader) {
	w.t.Helper()
	cmd = command(w.t, w.dir, append(args, "--store", "store")...)
	cmd.Env = os.Environ()
	for _, name := range serverVariables {
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

// TestARunOfAnotherProcessIsWatched kills the run's process; another one continues and ends the
// run.
func TestARunOfAnotherProcessIsWatched(t *testing.T) {
	w := newWatchedRun(t)
	first := w.begin()
	viewer, out := w.start("view", "watched")
	address, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	const rows = `[...document.querySelectorAll('.row:not([hidden])')]` +
		`.map((r) => r.getAttribute('aria-label')).join('|')`
	status := func(want string) string {
		return `document.getElementById('status').textContent === '` + want + `'`
	}
	p := browser.Open(t)
	p.Do(chromedp.Navigate(strings.TrimSpace(address)))
	p.Wait(status("running"))
	p.Wait(rows + `.includes('is it there?')`)
	p.Wait(rows + `.includes('turn, Turn 2, running')`)
	end := w.follow("turn 2/root 1 begins: ")

	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	p.Wait(status("interrupted"))
	end(cli.ExitInterrupted, "turn 1 is kept\n")

	second := w.begin()
	p.Wait(status("running"))
	end = w.follow("turn 2/root 1 begins: ")
	close(w.release)
	p.Wait(status("answered"))
	p.Wait(rows + `.includes("FINAL('found')")`)
	end(cli.ExitOK, "watched: answered\n")
	if code := exitCodeOf(t, second); code != cli.ExitOK {
		t.Errorf("the run ends with %d", code)
	}
	interrupt(t, viewer)
	if code := exitCodeOf(t, viewer); code != cli.ExitOK {
		t.Errorf("the viewer ends with %d", code)
	}
}
