package local_test

import (
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// harming attacks want to break the session, its keeper or the connection. They
// may end in any way; the session goes on and says what it lost.
var harming = []struct{ name, source string }{
	{"a fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"},
	{"a bomb of a shell", "import subprocess\nsubprocess.run(['bash', '-c', 'b() { while :; do b & done; }; b'])"},
	{"a bomb of threads", "import threading, time\nwhile True:\n    try: threading.Thread(target=time.sleep, args=(100,)).start()\n    except RuntimeError: pass"},
	{"memory of many children", "import os, time\nwhile True:\n    try:\n        if os.fork() == 0:\n            x = b'x' * (100 << 20)\n            time.sleep(100)\n            os._exit(0)\n    except (OSError, MemoryError): pass"},
	{"a zip bomb", "import zlib\nd = zlib.compress(zlib.compress(bytes(1 << 28)))\nx = [zlib.decompress(zlib.decompress(d)) for _ in range(100)]"},
	{"all signals to the parent", "import os\nfor s in range(1, 65):\n    try: os.kill(os.getppid(), s)\n    except OSError: pass"},
	{"a signal to the parent", "import os\nos.kill(os.getppid(), 9)"},
	{"a signal to everybody", "import os\nos.kill(-1, 9)"},
	{"a stop of everybody", "import os, signal\nos.kill(-1, signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)"},
	{"a stop of itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"},
	{"a stop of the parent", "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nos._exit(0)"},
	{"all processes in /proc", "import os\nfor p in os.listdir('/proc'):\n    if p.isdigit() and int(p) != os.getpid():\n        try: os.kill(int(p), 9)\n        except OSError: pass"},
	{"closing the connection", "import os\nos.close(3)"},
	{"another file for the connection", "import os\nos.dup2(os.open('/dev/null', os.O_RDWR), 3)"},
	{"a shutdown of the connection", "import socket\nsocket.socket(fileno=3).shutdown(2)"},
	{"rubbish on the connection", "import os\nos.write(3, os.urandom(1 << 16))"},
	{"a huge frame", "import os\nos.write(3, b'\\xff\\xff\\xff\\xffq')"},
	{"a flood of the connection", "import os\nwhile True: os.write(3, bytes(1 << 16))"},
	{"a flood of requests", "import os, struct\nr = b'i'\nwhile True: os.write(3, struct.pack('<IBI', 4 + len(r), 113, 7) + r)"},
	{"a flood of long answers", "import os, struct\nr = b'x' * 200000\nwhile True: os.write(3, struct.pack('<IBI', 4 + len(r), 113, 7) + r)"},
	{"an end that is forged", "import os, struct\nos.write(3, struct.pack('<IBiQ', 12, 100, 0, 0))\nx = 'later'"},
	{"an end with another code", "import os, struct\nos.write(3, struct.pack('<IBiQ', 12, 100, 77, 1 << 63))"},
	{"a keeper that is forged", "import os, struct\nfor pid in (1, 2, 0, os.getpid(), 4000000): os.write(3, struct.pack('<IBI', 4, 107, pid))\nos._exit(0)"},
	{"itself as the keeper", "import os, struct\nos.write(3, struct.pack('<IBI', 4, 107, os.getpid()))\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass"},
	{"the mark of the keeper", "import gc, os\nfor o in gc.get_objects():\n    if isinstance(o, tuple):\n        for x in o:\n            if isinstance(x, bytes) and len(x) == 16:\n                os.write(3, x)"},
	{"another start", "import os\nos.write(3, b'\\x0c\\0\\0\\0y' + bytes(12))"},
	{"os._exit", "import os\nos._exit(0)"},
	{"a fault", "import ctypes\nctypes.string_at(1)"},
	{"memory overwritten", "import ctypes\nctypes.memset(id(1), 0, 1 << 24)"},
	{"another program in its place", "import os\nos.execv('/bin/sleep', ['sleep', '600'])"},
	{"the runtime's module", "import _rlm\nfor n in list(vars(_rlm)): setattr(_rlm, n, None)"},
	{"the runtime's functions", "import gc, types\nfor o in gc.get_objects():\n    if isinstance(o, types.FunctionType) and o.__code__.co_filename.startswith('<rlm'):\n        o.__code__ = (lambda *a, **k: 1 / 0).__code__ if not o.__closure__ else o.__code__"},
	{"a thread that spoils later snippets", "import threading, os, time\ndef f():\n    time.sleep(0.2)\n    os._exit(5)\nthreading.Thread(target=f, daemon=True).start()"},
	{"a timer that ends it", "import signal, os\nsignal.signal(signal.SIGALRM, lambda *a: os._exit(1))\nsignal.setitimer(signal.ITIMER_REAL, 0.2)"},
	{"signals that are blocked", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"},
	{"a hang in C", "import ctypes\nctypes.CDLL(None).pause()\nwhile True: ctypes.CDLL(None).pause()"},
	{"a wait for a child", "import subprocess\nsubprocess.run(['sleep', '600'])"},
	{"a stop that hides in a child", "import subprocess\nsubprocess.run(['bash', '-c', 'trap \"\" INT TERM; while :; do :; done'])"},
	{"a flood by a child", "import subprocess\nsubprocess.run(['yes'])"},
	{"threads that never end", "import threading\nfor _ in range(4): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()\nthreading.Event().wait()"},
}

func TestHostileHarm(t *testing.T) {
	tier := usual(t)
	for _, a := range harming {
		t.Run(a.name, func(t *testing.T) {
			b := box(t, tier, tiers.Config{Limits: tiers.Limits{Wall: 500 * time.Millisecond, Memory: 256 << 20}})
			run(t, b, "kept = 'kept'")
			begun := time.Now()
			r := run(t, b, a.source)
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("it took %v", took)
			}
			t.Logf("%s %s %v", r.Status, r.Limit, r.Lost != nil)
			lost := r.Lost != nil && slices.Contains(r.Lost.Snippets, 1)
			if strings.Contains(a.name, "later") || strings.Contains(a.name, "timer") {
				time.Sleep(300 * time.Millisecond)
			}
			// What the attack did after its end shows in the next snippet.
			later := run(t, b, "1")
			lost = lost || later.Lost != nil && slices.Contains(later.Lost.Snippets, 1)
			alive(t, b)
			want := "True\n"
			if lost {
				want = "False\n"
			}
			if r := run(t, b, "print(globals().get('kept') == 'kept')"); r.Stdout != want {
				t.Errorf("the variable of snippet 1: %q, reported as lost: %v", r.Stdout, lost)
			}
		})
	}
}

// unkept is a session as it would be without what the tier has against harm: no
// kept copy, no frames that are checked, nobody who stops it. It reads snippets
// from the connection and says "done" after each. Its parent is all that waits
// for it.
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

// TestHarmWithoutTheTier is the negative control of the attacks on the session:
// in one that is not kept, the next snippet is not answered as it should.
func TestHarmWithoutTheTier(t *testing.T) {
	tier := newTier(t, local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: -1})
	tiertest.Require(t, local.Name, tier.Probe(t.Context()))
	t.Run("attacks", func(t *testing.T) {
		for _, a := range harming {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				if said := unkeptAnswer(t, tier, a.source, 700*time.Millisecond); said == unharmed {
					t.Error("it does no harm")
				}
			})
		}
	})
	for _, source := range []string{"pass", "1 / 0", "import os\nos.listdir('/proc')", "import time\ntime.sleep(0.2)"} {
		if said := unkeptAnswer(t, tier, source, time.Minute); said != unharmed {
			t.Errorf("%s harms an unkept session: %q", source, said)
		}
	}
}

// unharmed is what a session says from the attack on if nothing is wrong.
const unharmed = "done, kept, done, "

// unkeptAnswer runs a snippet in an unkept session, then asks for a variable and
// for the session's parent.
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
	for i, step := range []string{"import os\nkept, parent = 'kept, ', os.getppid()", source, "import _rlm, os, time\ntime.sleep(0.3)\n_rlm.send(kept if os.getppid() == parent else 'an orphan, ')"} {
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
		for want := []string{"done, ", "done, ", ", done, "}[i]; !strings.HasSuffix(said, want) && len(said) < 100; {
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

// leftBehind leaves a process behind.
const leftBehind = "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        for fd in range(0, 256):\n            try: os.close(fd)\n            except OSError: pass\n        os.execv('/bin/sleep', ['sleep', '86399'])\n    os._exit(0)"

// TestNoProcessOutlivesItsSandbox looks for a daemon after Close.
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
	if left := processes("sleep\x0086399"); len(left) != 0 {
		t.Errorf("daemons outlive the sandbox: %v", left)
	}
}

// TestAProcessOutlivesAnInterpreter is the negative control: a daemon of an
// interpreter that has no sandbox is still there when that has ended.
func TestAProcessOutlivesAnInterpreter(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("there is no /usr/bin/python3")
	}
	tiertest.BarePython(t, "/usr/bin/python3", leftBehind, 20*time.Second)
	for _, pid := range awaitDaemon(t) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}

// awaitDaemon waits until it runs.
func awaitDaemon(t *testing.T) []int {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if found := processes("sleep\x0086399"); len(found) > 0 {
			return found
		}
		if time.Now().After(end) {
			t.Fatal("the daemon does not run")
		}
	}
}

// processes are those of this machine whose arguments contain a text.
func processes(text string) []int {
	entries, _ := os.ReadDir("/proc") // no process, no match
	var found []int
	for _, e := range entries {
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline") // as above
		if pid, err := strconv.Atoi(e.Name()); err == nil && strings.Contains(string(line), text) {
			found = append(found, pid)
		}
	}
	return found
}
