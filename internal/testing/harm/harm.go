// Package harm shows the effect of a hostile snippet without a sandbox. It provides the negative
// controls of the suites, because an attack that does no harm proves nothing.
package harm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Kind is the effect of a hostile snippet on an interpreter without a sandbox, as shown by the
// negative control of an attack.
type Kind string

// The harms. Any other value is a string that the snippet must have written.
const (
	None     Kind = ""         // the interpreter is alive and answers
	Kills    Kind = "kills"    // a signal ends the process, or its exit code is not 0
	Hangs    Kind = "hangs"    // the snippet runs for longer than the tier's limit
	Grows    Kind = "grows"    // the snippet uses more memory than the tier's limit
	Floods   Kind = "floods"   // the snippet writes more than the tier's limit
	Corrupts Kind = "corrupts" // the interpreter is alive, but its next answer is wrong
)

// Bounds of a process without a sandbox, all higher than the limits under which tiers run the same
// snippets. They keep the test's host safe.
const (
	bareMemory = 600 << 20
	bareOutput = 8 << 20
	bareStart  = time.Minute
)

// Begun is the line that a process writes when the snippet begins. The snippet's time is measured
// from then on.
const Begun = "the snippet begins\n"

// Watch runs a process without a sandbox and returns the harm that it does, or None if it ends
// successfully within the time and the bounds. It also returns the output. If processes cannot be
// watched, it skips the test.
func Watch(t *testing.T, cmd *exec.Cmd, wall time.Duration) (Kind, string) {
	t.Helper()
	out := &bareOut{begun: make(chan struct{}), full: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, time.Second
	makeGroup(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", cmd.Path, err)
	}

	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	harm, ended := Kills, false
	deadline, begun := time.After(bareStart), out.begun
	for look := time.NewTicker(2 * time.Millisecond); !ended && harm == Kills; {
		select {
		case err := <-done:
			look.Stop()
			if ended = true; err == nil || errors.Is(err, exec.ErrWaitDelay) {
				harm = None
			}
		case <-begun:
			deadline, begun = time.After(wall), nil
		case <-deadline:
			harm = Hangs
		case <-out.full:
			harm = Floods
		case <-look.C:
			if residentMemory(cmd.Process.Pid) > bareMemory {
				harm = Grows
			}
		}
	}

	killGroup(cmd.Process.Pid) // the process and its children
	if !ended {
		err := <-done // the error of a killed process
		t.Log(err)
	}
	said := out.String()
	before, after, found := strings.Cut(said, Begun)
	if !found && harm != Floods {
		t.Fatalf("the process did not begin: %s: %q", harm, said)
	}

	return harm, before + after
}

// bareOut keeps the output of a process, up to a bound.
type bareOut struct {
	mu          sync.Mutex
	text        bytes.Buffer
	begun, full chan struct{}
	saw, over   bool
}

func (o *bareOut) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() <= bareOutput {
		o.text.Write(p)
	}
	if !o.saw && bytes.Contains(o.text.Bytes()[:min(o.text.Len(), 1<<16)], []byte(Begun)) {
		o.saw = true
		close(o.begun)
	}

	if !o.over && o.text.Len() > bareOutput {
		o.over = true
		close(o.full)
	}
	return len(p), nil
}

func (o *bareOut) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// bareSession is a program that runs its arguments as the snippets of one session, like a tier
// without a sandbox, limits, or care.
const bareSession = `import ast, sys, traceback
def run(source):
    try:
        tree = ast.parse(source)
        tail = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, '<snippet>', 'exec'), space)
        if tail:
            value = eval(compile(ast.Expression(tail.value), '<snippet>', 'eval'), space)
            if value is not None: print(repr(value))
    except BaseException:
        traceback.print_exc()
import resource, threading, asyncio, json, linecache, re
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
space = globals()
print('the snippet begins', flush=True)
for source in sys.argv[1:]: run(source)
`

// Marked is a session's first snippet. It sets a variable that later shows whether the session was
// preserved.
const Marked = `kept = {"since": "snippet 1"}`

// bareAnswer is a snippet that prints the variable that a session's first snippet set.
const bareAnswer = "print('the answer is', kept)"

// Alike reports whether two harms are equal, or can differ only because of the machine or the
// version. A bomb may reach another bound first, and a broken interpreter may or may not die.
func Alike(a, b Kind) bool {
	without := func(h Kind) Kind {
		switch h {
		case Grows, Floods:
			return Hangs
		case Corrupts:
			return Kills
		default:
			return h
		}
	}

	return without(a) == without(b)
}

// WatchPython runs a snippet in a session of a CPython without a sandbox and returns the harm that
// it does.
func WatchPython(t *testing.T, python string, source string, wall time.Duration, env ...string) (Kind, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*bareStart)
	defer cancel()
	harm, said := Watch(t, makeBare(ctx, t, python, env, Marked, source, bareAnswer), wall)
	if answer := fmt.Sprintln("the answer is", "{'since': 'snippet 1'}"); harm == None &&
		!strings.HasSuffix(said, answer) {
		harm = Corrupts
	}

	return harm, said
}

// makeBare returns the command for a CPython without a sandbox that runs snippets.
func makeBare(ctx context.Context, t *testing.T, python string, env []string, snippets ...string) *exec.Cmd {
	t.Helper()
	args := append([]string{"-P", "-s", "-X", "utf8", "-c", bareSession}, snippets...)
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.Dir, cmd.Env = t.TempDir(), append([]string{"PATH=/usr/bin:/bin"}, env...)
	return cmd
}

// bareKept is a snippet that marks the end of the previous snippet's output, and keeps the
// interpreter running.
const bareKept = "print('\\nthe snippet has run', flush=True)\nimport time\ntime.sleep(600)"

// KeepPython runs a snippet in a CPython without a sandbox that keeps running until end is called.
// It returns the snippet's output.
func KeepPython(t *testing.T, python string, source string, env ...string) (said string, end func()) {
	t.Helper()
	cmd := makeBare(t.Context(), t, python, env, source, bareKept)
	out := &bareOut{begun: make(chan struct{}), full: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, time.Second
	makeGroup(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", cmd.Path, err)
	}

	end = func() {
		killGroup(cmd.Process.Pid)
		_ = cmd.Wait() // it was killed
	}
	for deadline := time.Now().Add(bareStart); ; time.Sleep(10 * time.Millisecond) {
		_, after, _ := strings.Cut(out.String(), Begun)
		if before, _, found := strings.Cut(after, "\nthe snippet has run"); found {
			return before, end
		}
		if time.Now().After(deadline) {
			end()
			t.Fatalf("the snippet did not end: %s", out.String())
		}
	}
}
