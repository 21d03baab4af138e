package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
)

// patience is the maximum time until a process must end. Only a hanging process takes longer.
const patience = 2 * time.Minute

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

// begin starts rlm and returns when it has printed "begun".
func begin(t *testing.T, cmd *exec.Cmd) (stderr *bytes.Buffer) {
	t.Helper()
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "begun\n" {
		_ = cmd.Wait()
		t.Fatalf("the snippet printed %q (%v)\n%s", line, err, stderr)
	}
	return stderr
}

func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

func needSignals(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no way to send an interrupt to one process")
	}
}

func TestCtrlCEndsASnippetWithCode130(t *testing.T) {
	needSignals(t)
	for name, source := range map[string]string{
		"a loop":                  "while True: pass",
		"a loop in C code":        "sum(range(10 ** 12))",
		"a loop that catches all": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
		"asleep":                  "import time; time.sleep(3600)",
		"awaiting":                "import asyncio; await asyncio.sleep(3600)",
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, t.TempDir(), "exec", "--timeout", "1h", "-c",
				"print('begun')\n"+source, "-c", "print('never')")
			stderr := begin(t, cmd)
			interrupt(t, cmd)
			if code := exitCodeOf(t, cmd); code != 130 {
				t.Errorf("exit code %d, want 130\n%s", code, stderr)
			}
			if !strings.Contains(stderr.String(), "rlm: interrupted") {
				t.Errorf("stderr does not report the interrupt: %s", stderr)
			}
		})
	}
}

func TestCtrlCEndsTheReadingOfStdinWithCode130(t *testing.T) {
	needSignals(t)
	for name, args := range map[string][]string{
		"code":      {"exec", "-"},
		"a context": {"exec", "--context", "-", "-c", "print(1)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, t.TempDir(), args...)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// This is more than a pipe's buffer, so rlm has begun to read when the write returns.
			if _, err := stdin.Write(bytes.Repeat([]byte("#\n"), 1<<20)); err != nil {
				t.Fatal(err)
			}
			interrupt(t, cmd)
			hangs := time.AfterFunc(patience/4, func() {
				t.Error("the command goes on waiting for stdin after the interrupt")
				_ = cmd.Process.Kill()
			})
			defer hangs.Stop()
			if code := exitCodeOf(t, cmd); code != 130 {
				t.Errorf("exit code %d, want 130\n%s", code, &stderr)
			}
		})
	}
}

// TestAContextThatChangesIsExitCode5 changes the file while the first snippet waits, so that the
// second finds it changed.
func TestAContextThatChangesIsExitCode5(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not let one write to a file that is mapped")
	}
	text, err := content("ascii", 9<<20)
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, "changing.txt", text)
	cmd := command(t, filepath.Dir(path), "exec", "--context", "changing.txt", "-c",
		"print('begun')\nwhile context.bytes(0, 1) == b'T': pass", "-c", "print(len(context))")
	stderr := begin(t, cmd)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("X"), 0); err != nil {
		t.Fatal(err)
	}
	if code := exitCodeOf(t, cmd); code != 5 {
		t.Errorf("exit code %d, want 5", code)
	}
	if !strings.Contains(stderr.String(), "changing.txt") {
		t.Errorf("stderr does not name the file: %s", stderr)
	}
}

// TestAClosedStdoutEndsTheCommandQuietly closes the end of the reader, as head does. The command
// must end without a panic.
func TestAClosedStdoutEndsTheCommandQuietly(t *testing.T) {
	needSignals(t)
	cmd := command(t, t.TempDir(),
		"exec", "--max-output", "1GB", "-c", "print('begun')\nfor i in range(10 ** 7): print(i)")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := stdout.Close(); err != nil {
		t.Fatal(err)
	}
	if code := exitCodeOf(t, cmd); code == 0 {
		t.Error("the command went on to its end")
	}
	if strings.Contains(stderr.String(), "goroutine") {
		t.Errorf("it panicked:\n%s", &stderr)
	}
}

// thousands formats n like Python's format with a comma.
func thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func TestTheTicketsExampleFindsWhatGoFinds(t *testing.T) {
	text, err := content("mixed", 12<<20)
	if err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs(filepath.Join("..", "..", "examples", "tickets.py"))
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, "tickets.txt", text)
	cmd := command(t, filepath.Dir(path), "exec", "--context", "tickets.txt", example)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	got, want := strings.Split(string(out), "\n"), ticketLines(string(text))
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("line %d:\n%s\nwant\n%s", i+1, got[i], want[i])
		}
	}
	if stderr.Len() != 0 {
		t.Errorf("stderr: %s", &stderr)
	}
}

// ticketLines returns the lines that examples/tickets.py must print for a log.
func ticketLines(text string) []string {
	runes := []rune(text)
	infos, warns := strings.Count(text, "| INFO\n"), strings.Count(text, "| WARN\n")
	errs := strings.Count(text, "| ERROR\n")
	kyiv := strings.Index(text, "Київ")
	codes := count(regexp.MustCompile(`E-\p{Nd}{2}77`).FindAllString(text, -1))
	frequent := make([]string, 0, 3)
	total := 0
	for i, c := range codes {
		if total += c.times; i < 3 {
			frequent = append(frequent, fmt.Sprintf("('%s', %d)", c.value, c.times))
		}
	}
	lines := strings.Split(text, "\n")
	middle := []rune(lines[len(lines)/2])
	want := []string{
		fmt.Sprintf("%s characters, as a str", thousands(len(runes))),
		"begins: " + strings.TrimSpace(string(runes[:46])),
		fmt.Sprintf("tickets by severity: {'INFO': %d, 'WARN': %d, 'ERROR': %d}", infos, warns,
			errs),
		"library cards lost in Kyiv are mentioned: True - first at " +
			thousands(len([]rune(text[:kyiv]))),
		fmt.Sprintf("error codes ending in 77: %d kinds, most frequent [%s]", len(codes),
			strings.Join(frequent, ", ")),
		fmt.Sprintf("%s lines; the middle one: %s", thousands(len(lines)),
			string(middle[:min(60, len(middle))])),
		"languages of the last tickets: " + lastLanguages(string(runes[len(runes)-20_000:])),
	}
	step := len(runes) / 5
	for i := range 5 {
		want = append(want, strings.ReplaceAll(string(runes[i*step:i*step+40]), "\n", " "))
	}
	return append(
		want,
		fmt.Sprintf(`{"tickets": %d, "errors": %d, "codes_ending_77": %d}`, infos+warns+errs, errs,
			total),
		"",
	)
}

// lastLanguages returns the five most frequent languages of the tickets in tail, as a Python dict.
func lastLanguages(tail string) string {
	var languages []string
	for ticket := range strings.SplitSeq(tail, "\n\n") {
		if strings.HasPrefix(ticket, "LIB-") && strings.Count(ticket, " | ") >= 4 {
			languages = append(languages, strings.Split(ticket, " | ")[3])
		}
	}
	var items []string
	for i, l := range count(languages) {
		if i < 5 {
			items = append(items, fmt.Sprintf("'%s': %d", l.value, l.times))
		}
	}
	return "{" + strings.Join(items, ", ") + "}"
}

// counted is a value with its number of occurrences.
type counted struct {
	value string
	times int
}

// count counts values as Python's Counter.most_common does: the most frequent first, and equally
// frequent ones in order of appearance.
func count(values []string) []counted {
	var all []counted
	at := map[string]int{}
	for _, v := range values {
		i, known := at[v]
		if !known {
			i = len(all)
			at[v] = i
			all = append(all, counted{value: v})
		}
		all[i].times++
	}
	slices.SortStableFunc(all, func(a, b counted) int { return b.times - a.times })
	return all
}

func TestRunReturnsTheCodeAndTouchesNothingElse(t *testing.T) {
	needCache(t)
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), []string{"exec", "-c", "print(1); 1/0"},
		strings.NewReader(""), &stdout, &stderr)
	if code != cli.ExitRaised || stdout.String() != "1\n" ||
		!strings.Contains(stderr.String(), "ZeroDivisionError") {
		t.Errorf("code %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
}
