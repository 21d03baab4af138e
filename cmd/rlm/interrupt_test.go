//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers/docker"
)

// waitFor reads lines until one contains the given string.
func waitFor(t *testing.T, lines *bufio.Reader, text string, also ...fmt.Stringer) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("%q never came: %v %v", text, err, also)
		}
	}
}

func TestCtrlCInterruptsTheSnippetNotTheSession(t *testing.T) {
	cmd := command(t, t.TempDir(), "repl", "--quiet")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	endless := "x = 41\nif x:\n    print('busy')\n    while True: pass\n\n"
	if _, err := io.WriteString(stdin, endless); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	waitFor(t, lines, "busy")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stdin, "print('x is', x)\n:quit\n"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, lines, "x is 41", &stderr)
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if !strings.Contains(stderr.String(), "interrupted; the session continues") {
		t.Errorf("stderr: %s", &stderr)
	}
}

// interruptBusy starts a command whose snippet prints "busy", then interrupts it, waits for its
// end, and returns its standard error.
func interruptBusy(t *testing.T, cmd *exec.Cmd) *bytes.Buffer {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, bufio.NewReader(stdout), "busy", stderr)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCodeOf(t, cmd); code != cli.ExitInterrupted {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	return stderr
}

// TestAnInterruptedCommandKeepsItsSession interrupts rlm exec --session, and checks that the next
// command has the snippet's assignments.
func TestAnInterruptedCommandKeepsItsSession(t *testing.T) {
	dir := t.TempDir()
	cmd := command(t, dir, "exec", "--session", "notes", "--store", filepath.Join(dir, "store"), "-c",
		"x = 41\nprint('busy', flush=True)\nwhile True: pass")
	stderr := interruptBusy(t, cmd)

	out, err := command(t, dir, "exec", "--session", "notes", "--store", filepath.Join(dir, "store"),
		"-c", "print(x)").Output()
	if err != nil || string(out) != "41\n" {
		t.Errorf("%q %v\n%s", out, err, stderr)
	}
}

// TestFilesOfAnInterruptedCommandComeBack interrupts rlm exec --out, and checks the exit code and
// that the files of the snippet are copied.
func TestFilesOfAnInterruptedCommandComeBack(t *testing.T) {
	tier := docker.New(docker.Options{Host: wiring.DockerHost()})
	skip.WithoutTier(t, docker.Name, tier.Probe(t.Context()))
	dir := t.TempDir()
	cmd := command(t, dir, "exec", "--out", "files", "-c",
		"open('/out/kept', 'w').write('it')\nprint('busy', flush=True)\nwhile True: pass")
	stderr := interruptBusy(t, cmd)
	if text, err := os.ReadFile(filepath.Join(dir, "files", "kept")); string(text) != "it" {
		t.Errorf("%q %v\n%s", text, err, stderr)
	}
}

// TestARunThatIsEndedKeepsWhatWasWritten ends one run with Ctrl-C, which it can handle, and another
// with SIGKILL, which it cannot.
func TestARunThatIsEndedKeepsWhatWasWritten(t *testing.T) {
	for _, c := range []struct {
		signal unix.Signal
		code   int
		shown  string
	}{{unix.SIGINT, cli.ExitInterrupted, "canceled in"}, {unix.SIGKILL, -1, "not ended"}} {
		dir := t.TempDir()
		script := "version: 1\nrules:\n  - when: {said: 0}\n    reply: |\n" +
			"      ```repl\n      print('first')\n      ```\n  - delay: 50s\n    reply: FINAL(1)\n"
		if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := command(t, dir, "run", "x", "--model", "scripted/s.yaml", "--trace", "tr")
		lines := startNoted(t, cmd)
		waitFor(t, lines, "snippet in wasm: ok")
		waitForTurn(t, filepath.Join(dir, "tr", "trajectory.jsonl"))
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, lines)
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != c.code {
			t.Errorf("%v ends it with %v", c.signal, err)
		}
		out, err := command(t, dir, "trace", "show", "tr").CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.shown) ||
			!strings.Contains(string(out), "first") {
			t.Errorf("%v: %v\n%s", c.signal, err, out)
		}
	}
}

// waitForTurn waits until a trajectory contains its first turn.
func waitForTurn(t *testing.T, path string) {
	t.Helper()
	for t.Context().Err() == nil {
		data, err := os.ReadFile(path)
		if err == nil && strings.Count(string(data), "\n") >= 2 {
			return
		}
	}
	t.Fatal(t.Context().Err())
}

// TestAnInterruptedRunPrintsNoUnprovenAnswer interrupts a run after a turn that noted an answer,
// before the turn that would check the answer.
func TestAnInterruptedRunPrintsNoUnprovenAnswer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeFile(t, folder, "s.yaml", `version: 1
rules:
  - when: {purpose: root, turn: 1}
    reply: |
      `+"```repl"+`
      answer["content"] = "17, I guess"
      print("guessed 17")
      `+"```"+`
  - when: {purpose: root}
    delay: 1m
    reply: FINAL(18)
`)
	writeFile(t, folder, "a.txt", "text")
	cmd := command(t, folder,
		"ask", "how many?", "--context", "a.txt", "--bypass", "0", "--model", "scripted/s.yaml", "-v")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	lines := startNoted(t, cmd)
	waitFor(t, lines, "turn 1: snippet in ")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}

	rest, _ := io.ReadAll(lines)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitInterrupted {
		t.Errorf("it ended with %v\n%s", err, rest)
	}
	if stdout.Len() > 0 {
		t.Errorf("it printed %q", &stdout)
	}
}

// startNoted starts a command, and returns its notes.
func startNoted(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(stderr)
}
