//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// TestAnApprovedCallOfAServerIsMadeOnce kills a run at each write before its call waits, and the
// approval at each of its writes. It checks that the server receives the call once, after the
// approval.
func TestAnApprovedCallOfAServerIsMadeOnce(t *testing.T) {
	skip.Short(t, "it starts many processes")
	t.Parallel()
	d := &killedRun{t, t.TempDir()}
	servers(t, d.dir, "mail")
	writeFile(t, d.dir, "s.yaml", "version: 1\nrules:\n  - when: {}\n    reply: |\n"+
		"      ```repl\n      FINAL(await mail.send(text='ann'))\n      ```\n")
	begin := []string{
		"run", "tell ann", "--name", "killed", "--mcp", "mcp.json", "--approve", "ask mail__send",
		"--model", "scripted/s.yaml", "--bypass", "0", "--quiet",
	}

	moments := 0
	for {
		moments++
		code, out := d.runKilled(moments, begin...)
		if code != -1 && code != cli.ExitParked || d.sent() > 0 {
			t.Fatalf("moment %d: exit code %d, %d sent\n%s", moments, code, d.sent(), out)
		}
		if code == cli.ExitParked {
			break
		}
	}

	waiting := d.waiting()
	if moments < 3 || len(waiting) != 1 {
		t.Fatalf("%d moments, waiting: %v", moments, waiting)
	}
	for at := 1; slices.Equal(d.waiting(), waiting); at++ {
		if code, out := d.runKilled(at, "runs", "approve", waiting[0]); code != -1 && code != cli.ExitOK {
			t.Fatalf("the approval ended with %d\n%s", code, out)
		}
	}

	for range 2 {
		if code, out := d.runKilled(0, begin...); code != cli.ExitOK || out != "sent to ann\n" || d.sent() != 1 {
			t.Fatalf("exit code %d, %d sent\n%s", code, d.sent(), out)
		}
	}
}

// runKilled runs the program, which kills itself at the given moment around a write, or never if at
// is 0. The exit code is -1 if it killed itself.
func (d *killedRun) runKilled(at int, args ...string) (code int, out string) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "rlmkilled", append(args, "--store", "store")...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), killVariable+"="+strconv.Itoa(at))
	var both strings.Builder
	cmd.Stdout, cmd.Stderr = &both, &both
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), both.String()
}
