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
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/prompt"
)

// terminal starts a command in a new terminal and returns the user's end of it. A terminal without
// a size has zero columns.
func terminal(t *testing.T, cmd *exec.Cmd, columns uint16) *os.File {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals on this machine: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() }) // by then, the command has ended
	fd := int(person.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals on this machine: %v", err)
	}
	defer program.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(cmd.Environ(), "TERM=xterm")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return person
}

// readUntil reads until it has found a string.
func readUntil(t *testing.T, from *bufio.Reader, text string) {
	t.Helper()
	var seen strings.Builder
	for !strings.HasSuffix(seen.String(), text) {
		b, err := from.ReadByte()
		if err != nil {
			t.Fatalf("%q does not come: %v\n%q", text, err, seen.String())
		}
		seen.WriteByte(b)
	}
}

func TestASessionInATerminalOutlivesCtrlCAndEndsItsLine(t *testing.T) {
	for _, columns := range []uint16{80, 0} {
		t.Run(fmt.Sprintf("%d columns", columns), func(t *testing.T) {
			cmd := command(t, t.TempDir(), "repl", "--quiet", "--history", "none")
			converse(t, cmd, columns, []said{
				{"", ">>> "},
				{"x = 41\r", "\n"},
				{"", ">>> "},
				{"rubb", "rubb"},
				{"\x03", "\n"},
				{"", ">>> "},
				{"print(x + 1)\r", "42\r\n"},
				{"", ">>> "},
				{"\x04", "\r\n"},
			})
		})
	}
}

// resumable matches the note of a question that ended early.
var resumable = regexp.MustCompile(`rlm: continue with: rlm runs resume \S+\r\n`)

// TestCtrlCLeavesACleanLine checks that the notes of an interrupted command begin on a new line,
// although the terminal has shown ^C, and that the live view disappears.
func TestCtrlCLeavesACleanLine(t *testing.T) {
	dir := t.TempDir()
	script := "version: 1\nrules:\n  - delay: 50s\n    reply: FINAL(1)\n"
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		begun string
	}{
		{
			[]string{"exec", "-c", "print('busy', end='', flush=True)\nwhile True: pass"},
			"busy",
		},
		{
			[]string{"ask", "x", "--model", "scripted/s.yaml"},
			"asks scripted/s.yaml",
		},
	} {
		cmd := command(t, dir, c.args...)
		person := terminal(t, cmd, 80)
		screen := bufio.NewReader(person)
		readUntil(t, screen, c.begun)
		if _, err := person.WriteString("\x03"); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(screen) // fails when no program has the terminal open
		if code := exitCodeOf(t, cmd); code != cli.ExitInterrupted {
			t.Errorf("%v: exit code %d", c.args, code)
		}
		before, isLast := bytes.CutSuffix(rest, []byte("rlm: interrupted\r\n"))
		before = resumable.ReplaceAll(before, nil)
		begins := bytes.HasSuffix(before, []byte("^C\r\n")) || bytes.HasSuffix(before, []byte("\r\x1b[J"))
		if !isLast || !begins || bytes.Contains(rest, []byte("broke")) ||
			bytes.Contains(rest, []byte("context canceled")) {
			t.Errorf("%v: the terminal gets %q", c.args, rest)
		}
	}
}

// said is the input that a person types, with the terminal's output.
type said struct{ typed, shown string }

// converse conducts a dialogue with a command in a terminal, until the command ends successfully.
func converse(t *testing.T, cmd *exec.Cmd, columns uint16, dialogue []said) {
	t.Helper()

	person := terminal(t, cmd, columns)
	screen := bufio.NewReader(person)
	for _, said := range dialogue {
		time.Sleep(2 * prompt.FastestTyped) // like a person, who reads the prompt first
		if _, err := person.WriteString(said.typed); err != nil {
			t.Fatal(err)
		}
		readUntil(t, screen, said.shown)
	}

	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestATerminalCompletesAndIndents types as a person does, and pastes a block.
func TestATerminalCompletesAndIndents(t *testing.T) {
	converse(t, command(t, t.TempDir(), "repl", "--quiet", "--history", "none"), 80, []said{
		{"", ">>> "},
		{"import json, collect\t", "collections"},
		{"\r", ">>> "},
		{"from json import loa\t\t", "\r\nload loads \r\n"},
		{"", "import load"},
		{"\r", ">>> "},
		{"class C: size = property(lambda self: 1 / 0)\r", ">>> "},
		{"box = {'c': C()}; c = C()\r", ">>> "},
		{"box.setd\t", "box.setdefault("},
		{"\x03", ">>> "},
		{"c.si\t", "c.size"}, // completion has not executed the property
		{"\x03", ">>> "},
		{"json.decoder.JSONDecodeE\t", "JSONDecodeError("},
		{"\x03", ">>> "},

		// Typed lines are indented automatically, and a line with only this indent ends the block.
		{"def f():\r", "...     "},
		{"return 40\r", "... "},
		{"\r", ">>> "},

		// A pasted block keeps its own indentation.
		{"for i in range(2):\r    for j in range(1):\r        print(f() + i + 1)\r\r", "42\r\n"},
		{"", ">>> "},

		// The history recalls a block as a whole, and the block runs immediately.
		{"\x1b[A", "(f() + i + 1)"},
		{"\r", "42\r\n"},
		{"", ">>> "},
		{"\x1b[A\x1b[A", "def f():\u2424    return 40"},
		{"\x03", ">>> "},
		{"\x04", "\r\n"},
	})
}

// TestAChatInATerminalOutlivesCtrlC interrupts a question and asks another one.
func TestAChatInATerminalOutlivesCtrlC(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	rules := "version: 1\nrules:\n" +
		"  - when: {last: \"^Question: slow\"}\n    reply: FINAL(1)\n    delay: 50s\n" +
		"  - when: {last: \"variables already: x \"}\n    reply: FINAL(x)\n" +
		"  - reply: |\n      ```repl\n      x = 'kept'\n      FINAL('first')\n      ```\n"
	if err := os.WriteFile(script, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, dir, "chat", "--history", "none", "--model", "scripted/"+script)
	converse(t, cmd, 80, []said{
		{"", "? "},
		{"one\r", "first\r\n"},
		{"", "? "},
		{"slow\r", ": slow\r\n"},
		{"\x03", "rlm: interrupted; the session continues\r\n"},
		{"", "? "},
		{"two\r", "kept\r\n"},
		{"", "? "},
		{"\x04", "\r\n"},
	})
}

// TestAnAnswerDoesNothingToATerminal checks that a model's control sequences do not reach a
// terminal.
func TestAnAnswerDoesNothingToATerminal(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	rules := "version: 1\nrules:\n  - reply: |\n      ```repl\n" +
		"      FINAL(chr(27) + ']0;owned' + chr(7) + 'end')\n      ```\n"
	if err := os.WriteFile(script, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, dir, "run", "--quiet", "--model", "scripted/"+script, "what?", "--context",
		script)
	readUntil(t, bufio.NewReader(terminal(t, cmd, 80)), `\x1b]0;owned\x07end`+"\r\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
