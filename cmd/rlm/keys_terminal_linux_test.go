package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// echoes reports whether a terminal echoes its input.
func echoes(t *testing.T, terminal *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS) //nolint:gosec // a descriptor fits
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// promptForKey starts rlm keys set on a terminal and waits for its prompt.
func promptForKey(t *testing.T, folder string) (cmd *exec.Cmd, screen, terminal *os.File) {
	t.Helper()
	screen, terminal = openTerminal(t)
	cmd = exec.Command("rlm", "keys", "set", "openai", "--file")
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+folder)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // fails if the process has ended

	var shown bytes.Buffer
	part := make([]byte, 4096)
	for !strings.Contains(shown.String(), "invisible") || echoes(t, terminal) {
		if strings.Contains(shown.String(), "invisible") {
			continue // the echo ends soon
		}
		n, err := screen.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(part[:n])
	}
	return cmd, screen, terminal
}

func TestATypedKeyIsNotShown(t *testing.T) {
	needCache(t)
	cmd, screen, terminal := promptForKey(t, t.TempDir())
	if _, err := screen.WriteString("sk-typed-0123456789\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if shown := readScreen(t, screen, terminal); strings.Contains(shown, "sk-typed") ||
		!strings.Contains(shown, "the key of openai is in ") || !echoes(t, terminal) {
		t.Errorf("the terminal shows %q, and echoes: %v", shown, echoes(t, terminal))
	}
}

func TestAnInterruptedPromptForAKeyRestoresTheTerminal(t *testing.T) {
	needCache(t)
	folder := t.TempDir()
	cmd, _, terminal := promptForKey(t, folder)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !echoes(t, terminal) {
		t.Errorf("exit code %d, the terminal echoes: %v", code, echoes(t, terminal))
	}
	if kept, err := os.ReadDir(folder); len(kept) != 0 || err != nil {
		t.Errorf("a key was kept: %v, %v", kept, err)
	}
}
