//go:build unix

package local_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/escapes"
	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// unkept is a session without the tier's protection against harm: it has no keeper, checks no
// frames, and nothing stops it. It reads snippets from the connection and sends "done" after each.
// Its only supervisor is its parent, which waits for it.
const unkept = `import os, sys, types
if os.fork():
    os.wait()
    os._exit(0)
_rlm = sys.modules['_rlm'] = types.ModuleType('_rlm')
exec(compile('''
import os
mark = (os.urandom(16), None)
def receive():
    data = b''
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], 'little'): data += os.read(3, 65536) or os._exit(0)
    return data[4:].decode()
def send(text):
    os.write(3, text.encode())
def serve(space):
    while True:
        source = receive()
        try: exec(source, space)
        except BaseException: pass
        send('done, ')
''', '<rlm unkept>', 'exec'), vars(_rlm))
_rlm.serve({})
`

// TestHarmWithoutTheTier is the negative control of the attacks on the session: in an unkept
// session, the next snippet is not answered correctly.
func TestHarmWithoutTheTier(t *testing.T) {
	skip.Short(t, "it waits until each attack has done its harm")
	skip.UnderRace(t)
	tier := newTier(t, local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: -1})
	tiertest.Require(t, local.Name, tier.Probe(t.Context()))
	t.Run("attacks", func(t *testing.T) {
		for _, a := range escapes.Cases(t) {
			if a.Class != "session" {
				continue
			}
			t.Run(a.Name, func(t *testing.T) {
				t.Parallel()
				if said := unkeptAnswer(t, tier, a.Source, 700*time.Millisecond); said == unharmed {
					t.Error("it does no harm")
				}
			})
		}
	})
	for _, source := range []string{
		"pass", "1 / 0", "import os\nos.listdir('/proc')",
		"import time\ntime.sleep(0.2)",
	} {
		t.Run(source, func(t *testing.T) {
			if said := unkeptAnswer(t, tier, source, time.Minute); said != unharmed {
				t.Errorf("%s harms an unkept session: %q", source, said)
			}
		})
	}
}

// unharmed is the output of a session, from the attack on, if the attack did no harm.
const unharmed = "done, kept, done, "

// unkeptAnswer runs a snippet in an unkept session, then queries a variable and the session's
// parent.
func unkeptAnswer(t *testing.T, tier *local.Tier, source string, wall time.Duration) string {
	t.Helper()
	p, err := tier.Bare(t.Context(), tiers.Limits{Memory: 256 << 20}, unkept)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	}()
	said := ""
	for i, step := range []string{
		"import os\nkept, parent = 'kept, ', os.getppid()", source,
		"import _rlm, os, time\ntime.sleep(0.8)\n_rlm.send(kept if os.getppid() == parent else " +
			"'an orphan, ')",
	} {
		frame := append(binary.LittleEndian.AppendUint32(nil, uint32(len(step))), step...)
		if _, err := p.Conn().Write(frame); err != nil {
			return said
		}
		within := wall
		if i != 1 {
			within = time.Minute
		}
		if err := p.Conn().SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1<<16)
		for want := []string{"done, ", "done, ", ", done, "}[i]; !strings.HasSuffix(said,
			want) && len(said) < 100; {
			n, err := p.Conn().Read(buf)
			if said += string(buf[:n]); err != nil {
				return said
			}
		}
		if i == 0 {
			said = ""
		}
	}
	return said
}

// awhile is the time in seconds that the daemons of this process sleep; it distinguishes them from
// the daemons of other test runs on this machine.
var awhile = fmt.Sprintf("86399.%d", os.Getpid())

// leftBehind is a snippet that leaves a daemon behind.
var leftBehind = "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n" +
	"        for fd in range(0, 256):\n            try: os.close(fd)\n" +
	"            except OSError: pass\n        os.execv('/bin/sleep', ['sleep', '" + awhile + "']" +
	")\n    os._exit(0)"

// TestNoProcessOutlivesItsSandbox checks that a daemon ends after Close, which only begins to end
// the jail.
func TestNoProcessOutlivesItsSandbox(t *testing.T) {
	tier := usual(t)
	b, err := tier.Open(t.Context(), tiers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, b, leftBehind)
	awaitDaemon(t)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "its daemons have ended", func() bool {
		return len(processes("sleep\x00"+awhile+"\x00")) == 0
	})
}

// TestAProcessOutlivesAnInterpreter is the negative control: a daemon of an interpreter without a
// sandbox still runs after the interpreter has ended.
func TestAProcessOutlivesAnInterpreter(t *testing.T) {
	needCommonPython(t)
	harm.WatchPython(t, "/usr/bin/python3", leftBehind, 20*time.Second)
	for _, pid := range awaitDaemon(t) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}

// awaitDaemon waits until the daemon runs.
func awaitDaemon(t *testing.T) []int {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if found := processes("sleep\x00" + awhile + "\x00"); len(found) > 0 {
			return found
		}
		if time.Now().After(end) {
			t.Fatal("the daemon does not run")
		}
	}
}
