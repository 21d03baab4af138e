//go:build unix

package pgstore

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// TestAPausedProcessCannotWrite pauses a process for longer than its lease, and lets it continue in
// the middle of its writes.
func TestAPausedProcessCannotWrite(t *testing.T) {
	t.Parallel() // it waits
	w := newWorld(t)
	s := w.open(t)
	check(t, s.Create(t.Context(), store.Log{ID: runA}))

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_OWNER="+w.options.Schema+" "+w.url)
	stdout, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || lines.Text() != "owned <nil>" {
		t.Fatalf("the process says %q", lines.Text())
	}
	_, err = s.Acquire(t.Context(), runA)
	var owned *store.OwnedError
	if !errors.As(err, &owned) || !strings.Contains(owned.Owner, fmt.Sprintf("process %d on ", cmd.Process.Pid)) {
		t.Errorf("while it lives: %v", err)
	}

	check(t, cmd.Process.Signal(syscall.SIGSTOP))
	lease := acquireLater(t, s)
	check(t, s.Append(t.Context(), lease, store.Entry{Key: "new"}))
	check(t, cmd.Process.Signal(syscall.SIGCONT))
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "lost true ") {
		t.Errorf("after the pause, the process says %q", lines.Text())
	}
	check(t, s.Append(t.Context(), lease, store.Entry{Key: "new"}))

	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	for i, e := range entries {
		if (e.Key == "new") != (i >= len(entries)-2) {
			t.Errorf("entry %d of %d is by the %s owner", i, len(entries), e.Key)
		}
	}
}
