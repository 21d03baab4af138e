package record

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/repl/ledger"
)

// writer is set for the child process of TestKillLosesNothingThatWasWritten.
const writer = "RLM_TEST_TRACE_WRITER"

// TestKillLosesNothingThatWasWritten kills a process that writes a trace and checks that the trace
// has every line that the process had announced. Only a line that was being written may be
// truncated, and then it has no line end.
func TestKillLosesNothingThatWasWritten(t *testing.T) {
	if dir := os.Getenv(writer); dir != "" {
		writeForEver(dir)
	}
	dir := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(
		t.Context(), os.Args[0], "-test.run=^TestKillLosesNothingThatWasWritten$",
	)
	cmd.Env = append(os.Environ(), writer+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := 0
	scanner := bufio.NewScanner(out)
	for told < 200 && scanner.Scan() {
		told++
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	for _, file := range []string{
		trajectory.File, trajectory.EventsFile, filepath.Join("sub_0001", trajectory.File),
	} {
		t.Run(fmt.Sprintf("%.60s", file), func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			whole := string(data[:strings.LastIndex(string(data), "\n")+1])
			lines := strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
			if len(lines) < 200 {
				t.Errorf("%s has %d lines, %d were told of", file, len(lines), told)
			}
			for i, line := range lines {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: line %d is no JSON: %.80q", file, i+1, line)
				}
			}
		})
	}
}

func writeForEver(dir string) {
	trace, err := Open(context.Background(), dir)
	if err != nil {
		panic(err)
	}
	child, err := trace.Child()
	if err != nil {
		panic(err)
	}
	trace.Begin(trajectory.Metadata{RootModel: "m"})
	child.Begin(trajectory.Metadata{RootModel: "m"})
	for i := 1; ; i++ {
		trace.Turn(Iteration{Iteration: i, Response: strings.Repeat("x", 5_000)})
		child.Turn(Iteration{Iteration: i})
		trace.Event(ledger.Event{Kind: ledger.EventReply, Text: "é"})
		_, _ = os.Stdout.WriteString("written\n")
	}
}

func TestAFolderHoldsOneTrace(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir); err == nil {
		t.Error("a second trace was opened over the first")
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	var none *Trace
	child, err := none.Child()
	if child != nil || err != nil || none.Close() != nil {
		t.Error("a nil Trace does something")
	}
	none.Begin(trajectory.Metadata{})
	none.Turn(Iteration{})
	none.Event(ledger.Event{})
}

// TestAClosedTraceHoldsNoFile closes traces with relative and other folder names and checks that no
// file stays open.
func TestAClosedTraceHoldsNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"plain", "./dot", "slash/", "a/../b"} {
		t.Run(dir, func(t *testing.T) {
			trace, err := Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			child, err := trace.Child()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Close(); err != nil {
				t.Error(err)
			}
			trace.Event(ledger.Event{Kind: ledger.EventReply})
			events := trace.files.open[trajectory.EventsFile].file
			if err := trace.Close(); err != nil {
				t.Error(err)
			}
			if err := events.Close(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s: the file of events is open", dir)
			}
		})
	}
}

// TestAFullDiskIsToldOnce checks that a full disk is reported once, and that nothing is written
// after a line that may be incomplete.
func TestAFullDiskIsToldOnce(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	l := &lines{file: full}
	record := &files{open: map[string]*lines{"x": l}}
	record.write("x", []byte("1"))
	l.file = file
	record.write("x", []byte("2"))
	(&Trace{files: record}).write(trajectory.Kept{File: "x"}, make(chan int)) // cannot be encoded
	if record.err == nil {
		t.Error("a line that cannot be encoded is lost without an error")
	}
	record.err = nil
	if err := record.endAll(); err == nil || strings.Contains(err.Error(), "\n") ||
		!errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(file.Name()); err != nil || len(data) > 0 {
		t.Errorf("%q was written, %v", data, err)
	}
	if err := full.Close(); err != nil {
		t.Error(err)
	}
}
