package tiertest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Harming are attacks that want to break the session, its keeper or the connection. They
// may end in any way; the session goes on and says what it lost.
var Harming = []struct{ Name, Source string }{
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

// AttackSessions runs attacks on the session itself, for tiers whose guests are processes of a
// kernel. Each ends soon, and the session goes on and says what it lost. Wall is
// how long a snippet may take.
func AttackSessions(t *testing.T, tier tiers.Tier, wall time.Duration) {
	s := &suite{tier: tier, info: tier.Info(), opt: Options{}.withDefaults(), share: share{tests: map[string]struct{}{}}}
	s.usable(t)
	for _, a := range Harming {
		t.Run(a.Name, func(t *testing.T) {
			b := s.open(t, tiers.Config{Limits: tiers.Limits{Wall: wall, Memory: 256 << 20}})
			b.run(t, "kept = 'kept'")
			begun := time.Now()
			r := b.run(t, a.Source)
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			t.Logf("%s %s %v", r.Status, r.Limit, r.Lost != nil)
			lost := r.Lost != nil && slices.Contains(r.Lost.Snippets, 1)
			if strings.Contains(a.Name, "later") || strings.Contains(a.Name, "timer") {
				time.Sleep(300 * time.Millisecond)
			}
			// What the attack did after its end shows in the next snippet.
			later := b.run(t, "1")
			lost = lost || later.Lost != nil && slices.Contains(later.Lost.Snippets, 1)
			// A process that it left may still write to stderr.
			if r := b.ok(t, "print('alive')"); r.Stdout != "alive\n" || r.Lost != nil {
				t.Errorf("the session does not go on as it should\n%s", describe(r))
			}
			want := "True\n"
			if lost {
				want = "False\n"
			}
			if r := b.run(t, "print(globals().get('kept') == 'kept')"); r.Stdout != want {
				t.Errorf("the variable of snippet 1: %q, reported as lost: %v", r.Stdout, lost)
			}
		})
	}
}
