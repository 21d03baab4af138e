package tiersuite

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// hostile runs snippets that try to get out or to break the runtime. Each may
// end in any way that is a result: never in a broken tier, never in a session
// that lies about its state.
func (s *suite) hostile(t *testing.T) {
	t.Setenv("RLM_CANARY", canary) // for secrets
	l := tiers.Limits{Wall: max(3*time.Second, 3*s.opt.StopAfter), Memory: 4 * s.opt.Memory}
	for name, attacks := range harmful {
		t.Run(name, func(t *testing.T) {
			skip.UnderRace(t)

			rows := make([]excess, len(attacks))
			for i, a := range attacks {
				rows[i] = excess{a.name, a.source}
			}
			s.survive(t, l, rows)
		})
	}
	t.Run("Oddities", func(t *testing.T) {
		skip.UnderRace(t)
		s.survive(t, l, oddities)
	})
	t.Run("Forgery", s.forgery)
	t.Run("Wire", s.wire)
	t.Run("Secrets", s.secrets)
	t.Run("Walls", s.walls)
	t.Run("Isolation", s.isolation)
	t.Run("Kill", s.kill)
}

// attack is a hostile snippet, and what it does to a session of a CPython that
// nothing protects: TestHarmOnCPython shows it.
type attack struct {
	name, source string
	harm         harm.Kind
}

// harmful are the attacks that do.
var harmful = map[string][]attack{"Runtime": againstRuntime, "Interpreter": againstInterpreter, "Bombs": bombs}

// againstRuntime attacks what the tier itself put into the guest.
var againstRuntime = []attack{
	{"closing all descriptors", "import os\nfor fd in range(10):\n    try: os.close(fd)\n    except OSError: pass", harm.Kills},
	{"duplicating over descriptors", "import os\nfor a in range(4):\n    for b in range(4):\n        try: os.dup2(a, b)\n        except Exception: pass", harm.Kills},
	{"closing the streams", "import sys\nsys.stdout.close()\nsys.stderr.close()\nsys.stdin.close()", harm.Kills},
	{"streams set to None", "import sys\nsys.stdout = sys.stderr = sys.stdin = None\nsys.__stdout__ = sys.__stderr__ = None\n1/0", harm.Corrupts},
	{"streams set to liars", "import sys\nclass L:\n    def write(self, s): raise MemoryError\n    def flush(self): raise SystemExit(7)\n    closed = property(lambda s: 1/0)\nsys.stdout = sys.stderr = L()\n1/0", harm.Kills},
	{"detaching the streams", "import sys\nsys.stdout.detach()\nsys.stderr.detach()\n1/0", harm.Kills},
	{"modules of the runtime emptied", "import sys\nfor m in list(sys.modules.values()):\n    try: vars(m).clear()\n    except Exception: pass", harm.Kills},
	{"builtins cleared", "import builtins\nbuiltins.__dict__.clear()", harm.Kills},
	{"builtins replaced", "import builtins\nfor n in list(vars(builtins)):\n    setattr(builtins, n, None)", harm.Kills},
	{"globals cleared but for what is the test's", "for n in [n for n in globals() if n != 'kept']: del globals()[n]", harm.Kills},
	{"__import__ replaced", "import builtins\nbuiltins.__import__ = lambda *a, **k: 1 / 0\nimport json", harm.Kills},
	{"print and repr replaced", "import builtins\nbuiltins.print = builtins.repr = builtins.len = builtins.isinstance = lambda *a, **k: 1 / 0", harm.Kills},
	{"a trace function left on", "import sys\ndef t(*a): raise ValueError('traced')\nsys.settrace(t)", harm.Kills},
	{"monitoring left on", "import sys\nm = sys.monitoring\nm.use_tool_id(2, 'x')\nm.register_callback(2, m.events.PY_START, lambda *a: 1 / 0)\nm.set_events(2, m.events.PY_START)", harm.Kills},
	{"a signal to itself", "import os, signal\nos.kill(os.getpid(), 9)", harm.Kills},
	{"frames of the runtime", "import sys\nf = sys._getframe()\nwhile f:\n    for g in (f.f_globals, f.f_builtins):\n        for k in list(g):\n            if not k.startswith('__'): g[k] = None\n    f = f.f_back", harm.Kills},
	{"locals of the runtime", "import sys\nf = sys._getframe()\nwhile f:\n    for k in list(f.f_locals):\n        try: f.f_locals[k] = None\n        except Exception: pass\n    f = f.f_back", harm.Kills},
	{"a traceback into the runtime", "import sys\ntry: 1 / 0\nexcept Exception as e:\n    tb = e.__traceback__\n    while tb:\n        g = tb.tb_frame.f_back and tb.tb_frame.f_back.f_globals or {}\n        for k in list(g):\n            if callable(g[k]): g[k] = print\n        tb = tb.tb_next", harm.Corrupts},
	{"all functions lose their code", "import gc, types\nc = (lambda *a, **k: None).__code__\nfor o in gc.get_objects():\n    if isinstance(o, types.FunctionType) and not o.__closure__:\n        try: o.__code__ = c\n        except Exception: pass", harm.Corrupts},
	{"all dicts are cleared", "import gc\nfor o in gc.get_objects():\n    if type(o) is dict:\n        try: o.clear()\n        except Exception: pass", harm.Kills},
	{"all lists are cleared", "import gc\nfor o in gc.get_objects():\n    if type(o) is list: o.clear()", harm.Corrupts},
	{"frozen objects thawed", "import gc\ngc.unfreeze()\ngc.set_threshold(1)\ngc.callbacks.append(lambda *a: 1 / 0)\ngc.collect()", harm.Corrupts},
	{"gc.set_debug", "import gc\ngc.set_debug(gc.DEBUG_LEAK)\ngc.collect()", harm.Corrupts},
	{"linecache spoiled", "import linecache\nlinecache.cache = None\nlinecache.getline = None\n1/0", harm.Kills},
	{"traceback spoiled", "import traceback\nfor n in dir(traceback):\n    if not n.startswith('__'): setattr(traceback, n, None)\n1/0", harm.Kills},
	{"ast and json spoiled", "import ast, json, inspect\nfor m in (ast, json, inspect):\n    for n in list(vars(m)):\n        if not n.startswith('__'): setattr(m, n, None)", harm.Kills},
	{"an audit hook", "import sys\ndef h(*a): raise SystemExit(9)\nsys.addaudithook(h)", harm.Kills},
	{"an audit hook that loops", "import sys\ndef h(e, a):\n    if e == 'compile':\n        while True: pass\nsys.addaudithook(h)\ncompile('1', 'x', 'eval')", harm.Hangs},
	{"a dict subclass as globals", "class D(dict):\n    def __getitem__(self, k): raise KeyboardInterrupt\nexec('x', D())", harm.Kills},
}

// againstInterpreter attacks CPython itself; some of these kill a native one.
var againstInterpreter = []attack{
	{"os._exit", "import os\nos._exit(3)", harm.Kills},
	{"os.abort", "import os\nos.abort()", harm.Kills},
	{"faulthandler._sigsegv", "import faulthandler\nfaulthandler._sigsegv()", harm.Kills},
	{"faulthandler's stack overflow", "import faulthandler\nfaulthandler._stack_overflow()", harm.Kills},
	{"faulthandler.dump_traceback_later", "import faulthandler\nfaulthandler.dump_traceback_later(0.01, exit=True)\nimport time\ntime.sleep(0.1)", harm.Kills},
	{"ctypes", "import ctypes\nctypes.string_at(0)", harm.Kills},
	{"garbage bytecode", "def f(): pass\nf.__code__ = f.__code__.replace(co_code=bytes(range(256)) * 4)\nf()", harm.Kills},
	{"random bytecode", "import random\nrandom.seed(1)\nfor i in range(300):\n    def f(a=1): return a\n    try:\n        f.__code__ = f.__code__.replace(co_code=bytes([151, 0]) + random.randbytes(40))\n        f()\n    except BaseException: pass", harm.Kills},
	{"LOAD_CONST out of range", "import opcode\ndef f(): return 1\no = opcode.opmap\nf.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0, o['EXTENDED_ARG'], 255, o['LOAD_CONST'], 255, o['RETURN_VALUE'], 0]))\nprint(f())", harm.Kills},
	{"a stack that underflows", "import opcode\ndef f(): return 1\no = opcode.opmap\nf.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0] + [o['POP_TOP'], 0] * 500 + [o['RETURN_VALUE'], 0]))\nf()", harm.Kills},
	{"a jump out of the code", "import opcode\ndef f(): return 1\no = opcode.opmap\nf.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0, o['EXTENDED_ARG'], 255, o['JUMP_FORWARD'], 255]))\nf()", harm.Kills},
	{"fewer names than the code needs", "def f(): return undefined + undefined2\nf.__code__ = f.__code__.replace(co_names=())\nf()", harm.Kills},
	{"marshal of garbage", "import marshal, random\nrandom.seed(2)\nfor i in range(2000):\n    try: marshal.loads(random.randbytes(50))\n    except (ValueError, EOFError, TypeError, MemoryError): pass", harm.Hangs},
	{"marshal of changed code", "import marshal\nd = bytearray(marshal.dumps(compile('def f(a): return [x for x in a if x]\\nf([1])', 'x', 'exec')))\nfor i in range(len(d)):\n    e = bytearray(d)\n    e[i] ^= 0x55\n    try: exec(marshal.loads(bytes(e)))\n    except BaseException: pass", harm.Kills},
	{"__del__ time bombs", "class D:\n    def __del__(s):\n        import sys\n        sys.stdout = None\n        raise SystemExit(1)\nbomb = [D() for _ in range(10)]", harm.Corrupts},
	{"weakref callbacks", "import weakref\nclass D: pass\nd = D()\nr = weakref.ref(d, lambda r: exec('import builtins; builtins.print = None'))\ndel d", harm.Kills},
	{"subinterpreters", "import _interpreters\ni = _interpreters.create()\n_interpreters.exec(i, 'while True: pass')", harm.Hangs},
}

// bombs are small programs with large consequences.
var bombs = []attack{
	{"an exception whose __str__ never ends", "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E", harm.Hangs},
	{"an exception whose __str__ is huge", "class E(Exception):\n    def __str__(self): return 'x' * 50_000_000\nraise E", harm.Floods},
	{"an exception whose class name is huge", "raise type('E' * 10_000_000, (Exception,), {})", harm.Floods},
	{"a huge exception message", "raise ValueError('x' * 50_000_000)", harm.Floods},
	{"huge exception notes", "e = ValueError()\nfor i in range(100000): e.add_note('n' * 100)\nraise e", harm.Floods},
	{"an echo that is huge", "[0] * 10_000_000", harm.Floods},
	{"a zlib bomb", "import zlib\nd = b'\\0' * (1 << 20)\nfor _ in range(3): d = zlib.compress(d * 200)\nfor _ in range(4): d = zlib.decompress(d)", harm.Hangs},
	{"a billion laughs in lists", "x = ['lol']\nfor _ in range(40): x = [x, x]\nlen(str(x))", harm.Hangs},
	{"a format spec of a billion", "'%999999999d' % 1", harm.Grows},
	{"a regex that is huge", "import re\nre.compile('(?:' + '|'.join('a' * i for i in range(3000)) + ')')", harm.Hangs},
	{"an int of many digits", "import sys\nsys.set_int_max_str_digits(0)\nint('9' * 5_000_000)", harm.Hangs},
	{"eval of a huge literal", "len(eval('[' + '1,' * 1_000_000 + ']'))", harm.Hangs},
	{"stderr and stdout without end", "import sys\nwhile True: print('x'); print('y', file=sys.stderr)", harm.Hangs},
}

// kill ends snippets at random moments. The seed is in the failure's log.
func (s *suite) kill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	box := s.open(t, tiers.Config{Limits: tiers.Limits{Memory: 4 * s.opt.Memory}})
	sources := []string{
		"while True: pass", "sum(range(10 ** 12))", "import time\ntime.sleep(3600)", "x = []\nwhile True: x.append([0] * 100)", "while True: print('x')",
		"import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')", "import gc\nwhile True: gc.collect()", "while True:\n    try: 1 / 0\n    except Exception: pass",
	}
	for range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(20_000))*time.Microsecond)
		_, err := box.try(ctx, t, tiers.Job{Source: sources[rng.IntN(len(sources))]})
		cancel()
		var broken *tiers.BrokenError
		if !errors.As(err, &broken) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Run returned %v, want a BrokenError with the context's error", err)
		}
		box.alive(t)
	}
}

// canary is set in the environment of the test process; no snippet may see it.
const canary = "rlm-canary-5f1c"

// secrets looks for the host in the guest.
func (s *suite) secrets(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	box := s.open(t, bare())
	r := box.ok(t, `import os, sys, glob
def attempt(f, *a):
    try:
        print(f(*a))
    except Exception as e:
        print(type(e).__name__)
print(dict(os.environ), sys.argv, sys.path, sys.prefix, sys.executable)
attempt(os.getcwd)
attempt(os.uname)
attempt(lambda: os.getlogin())
attempt(lambda: __import__('platform').node())
attempt(lambda: __import__('socket').gethostname())
for p in ('/', '.', '/proc/self', '/proc/1', '/etc', '/home', '/root', '/tmp'):
    attempt(os.listdir, p)
for p in ('/proc/self/environ', '/proc/1/environ', '/proc/self/cmdline', '/proc/self/maps', '/etc/hostname', '/etc/hosts'):
    attempt(lambda: open(p, 'rb').read())
attempt(lambda: glob.glob('/proc/*/environ'))`)
	for _, secret := range []string{canary, "RLM_CANARY", dir} {
		if strings.Contains(r.Stdout, secret) {
			t.Errorf("the guest sees %q\n%s", secret, describe(r))
		}
	}
	if len(host) > 3 && strings.Contains(r.Stdout, host) {
		t.Errorf("the guest sees the host's name %q\n%s", host, describe(r))
	}
}
