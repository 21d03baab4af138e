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

// testHostile runs snippets that try to escape or to break the runtime. Each may end in any way
// that is a result, but never in a broken tier or in a session that misreports its state.
func (s *suite) testHostile(t *testing.T) {
	t.Setenv("RLM_CANARY", canary) // for testSecrets
	l := tiers.Limits{Wall: max(3*time.Second, 3*s.opt.StopAfter), Memory: 4 * s.opt.Memory}
	for name, attacks := range harmful {
		t.Run(name, func(t *testing.T) {
			skip.UnderRace(t)
			skip.Short(t, "it runs dozens of attacks")

			rows := make([]excess, len(attacks))
			for i, a := range attacks {
				rows[i] = excess{a.name, a.source}
			}
			s.testSurvival(t, l, rows)
		})
	}

	t.Run("Oddities", func(t *testing.T) {
		skip.UnderRace(t)
		skip.Short(t, "it runs dozens of attacks")
		s.testSurvival(t, l, oddities)
	})
	t.Run("Forgery", s.testForgery)
	t.Run("Wire", s.testWire)
	t.Run("Amplification", func(t *testing.T) { s.playScenarios(t, newHost().config, amplified) })
	t.Run("Secrets", s.testSecrets)
	t.Run("Walls", s.testWalls)
	t.Run("Isolation", s.testIsolation)
	t.Run("Kill", s.testKill)
}

// amplified are requests of a few megabytes that would occupy hundreds of megabytes on the host.
// Each must end in an exception, and the session must continue. The tests of
// internal/snippet/session measure the cost.
var amplified = []scenario{{name: "requests that grow when decoded", steps: []step{{source: `import _rlm
few, named = '[],' * 1_000_000 + '[]', '"":0,' * 1_000_000 + '"":0'
kept = []
for request in ('v[' + few + ']', 'l{"left":[' + few + ']}', 'cecho\0[[' + few + '],{}]',
                'cecho\0[[],{' + named + '}]', 'cecho\0[' + few + ']', 'c' + few + '\0[[],{}]'):
    try:
        print(_rlm.call(request))
    except _rlm.HostError as e:
        kept.append(str(e)[:12])
print(len(kept))`, out: "6\n"}, {source: "print(len(kept))", out: "6\n"}}}}

// attack is a hostile snippet, with the harm that it does to a session of an unprotected CPython,
// as TestHarmOnCPython demonstrates.
type attack struct {
	name, source string
	harm         harm.Kind
}

// harmful are the attacks that do harm.
var harmful = map[string][]attack{"Runtime": againstRuntime, "Interpreter": againstInterpreter, "Bombs": bombs}

// againstRuntime are attacks on the code that the tier itself adds to the guest.
var againstRuntime = []attack{
	{"closing all descriptors", `import os
for fd in range(10):
    try: os.close(fd)
    except OSError: pass`, harm.Kills},
	{"duplicating over descriptors", `import os
for a in range(4):
    for b in range(4):
        try: os.dup2(a, b)
        except Exception: pass`, harm.Kills},
	{"closing the streams", `import sys
sys.stdout.close()
sys.stderr.close()
sys.stdin.close()`, harm.Kills},
	{"streams set to None", `import sys
sys.stdout = sys.stderr = sys.stdin = None
sys.__stdout__ = sys.__stderr__ = None
1/0`, harm.Corrupts},
	{"streams set to liars", `import sys
class L:
    def write(self, s): raise MemoryError
    def flush(self): raise SystemExit(7)
    closed = property(lambda s: 1/0)
sys.stdout = sys.stderr = L()
1/0`, harm.Kills},
	{"detaching the streams", "import sys\nsys.stdout.detach()\nsys.stderr.detach()\n1/0", harm.Kills},
	{"modules of the runtime emptied", `import sys
for m in list(sys.modules.values()):
    try: vars(m).clear()
    except Exception: pass`, harm.Kills},
	{"builtins cleared", "import builtins\nbuiltins.__dict__.clear()", harm.Kills},
	{"builtins replaced", `import builtins
for n in list(vars(builtins)):
    setattr(builtins, n, None)`, harm.Kills},
	{
		"globals cleared but for what is the test's",
		"for n in [n for n in globals() if n != 'kept']: del globals()[n]", harm.Kills,
	},
	{"__import__ replaced", `import builtins
builtins.__import__ = lambda *a, **k: 1 / 0
import json`, harm.Kills},
	{"print and repr replaced", `import builtins
builtins.print = builtins.repr = builtins.len = builtins.isinstance = lambda *a, **k: 1 / 0`, harm.Kills},
	{"a trace function left on", `import sys
def t(*a): raise ValueError('traced')
sys.settrace(t)`, harm.Kills},
	{"monitoring left on", `import sys
m = sys.monitoring
m.use_tool_id(2, 'x')
m.register_callback(2, m.events.PY_START, lambda *a: 1 / 0)
m.set_events(2, m.events.PY_START)`, harm.Kills},
	{"a signal to itself", "import os, signal\nos.kill(os.getpid(), 9)", harm.Kills},
	{"frames of the runtime", `import sys
f = sys._getframe()
while f:
    for g in (f.f_globals, f.f_builtins):
        for k in list(g):
            if not k.startswith('__'): g[k] = None
    f = f.f_back`, harm.Kills},
	{"locals of the runtime", `import sys
f = sys._getframe()
while f:
    for k in list(f.f_locals):
        try: f.f_locals[k] = None
        except Exception: pass
    f = f.f_back`, harm.Kills},
	{"a traceback into the runtime", `import sys
try: 1 / 0
except Exception as e:
    tb = e.__traceback__
    while tb:
        g = tb.tb_frame.f_back and tb.tb_frame.f_back.f_globals or {}
        for k in list(g):
            if callable(g[k]): g[k] = print
        tb = tb.tb_next`, harm.Corrupts},
	{"all functions lose their code", `import gc, types
c = (lambda *a, **k: None).__code__
for o in gc.get_objects():
    if isinstance(o, types.FunctionType) and not o.__closure__:
        try: o.__code__ = c
        except Exception: pass`, harm.Corrupts},
	{"all dicts are cleared", `import gc
for o in gc.get_objects():
    if type(o) is dict:
        try: o.clear()
        except Exception: pass`, harm.Kills},
	{"all lists are cleared", `import gc
for o in gc.get_objects():
    if type(o) is list: o.clear()`, harm.Corrupts},
	{"frozen objects thawed", `import gc
gc.unfreeze()
gc.set_threshold(1)
gc.callbacks.append(lambda *a: 1 / 0)
gc.collect()`, harm.Corrupts},
	{"gc.set_debug", "import gc\ngc.set_debug(gc.DEBUG_LEAK)\ngc.collect()", harm.Corrupts},
	{"linecache spoiled", `import linecache
linecache.cache = None
linecache.getline = None
1/0`, harm.Kills},
	{"traceback spoiled", `import traceback
for n in dir(traceback):
    if not n.startswith('__'): setattr(traceback, n, None)
1/0`, harm.Kills},
	{"ast and json spoiled", `import ast, json, inspect
for m in (ast, json, inspect):
    for n in list(vars(m)):
        if not n.startswith('__'): setattr(m, n, None)`, harm.Kills},
	{"an audit hook", "import sys\ndef h(*a): raise SystemExit(9)\nsys.addaudithook(h)", harm.Kills},
	{"an audit hook that loops", `import sys
def h(e, a):
    if e == 'compile':
        while True: pass
sys.addaudithook(h)
compile('1', 'x', 'eval')`, harm.Hangs},
	{"a dict subclass as globals", `class D(dict):
    def __getitem__(self, k): raise KeyboardInterrupt
exec('x', D())`, harm.Kills},
}

// againstInterpreter are attacks on CPython itself; some of these snippets kill a native
// interpreter.
var againstInterpreter = []attack{
	{"os._exit", "import os\nos._exit(3)", harm.Kills},
	{"os.abort", "import os\nos.abort()", harm.Kills},
	{"faulthandler._sigsegv", "import faulthandler\nfaulthandler._sigsegv()", harm.Kills},
	{"faulthandler's stack overflow", "import faulthandler\nfaulthandler._stack_overflow()", harm.Kills},
	{"faulthandler.dump_traceback_later", `import faulthandler
faulthandler.dump_traceback_later(0.01, exit=True)
import time
time.sleep(0.1)`, harm.Kills},
	{"ctypes", "import ctypes\nctypes.string_at(0)", harm.Kills},
	{"garbage bytecode", `def f(): pass
f.__code__ = f.__code__.replace(co_code=bytes(range(256)) * 4)
f()`, harm.Kills},
	{"random bytecode", `import random
random.seed(1)
for i in range(300):
    def f(a=1): return a
    try:
        f.__code__ = f.__code__.replace(co_code=bytes([151, 0]) + random.randbytes(40))
        f()
    except BaseException: pass`, harm.Kills},
	{"LOAD_CONST out of range", `import opcode
def f(): return 1
o = opcode.opmap
code = bytes([o['RESUME'], 0, o['EXTENDED_ARG'], 255, o['LOAD_CONST'], 255, o['RETURN_VALUE'], 0])
f.__code__ = f.__code__.replace(co_code=code)
print(f())`, harm.Kills},
	{"a stack that underflows", `import opcode
def f(): return 1
o = opcode.opmap
f.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0] + [o['POP_TOP'], 0] * 500 + [o['RETURN_VALUE'], 0]))
f()`, harm.Kills},
	{"a jump out of the code", `import opcode
def f(): return 1
o = opcode.opmap
f.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0, o['EXTENDED_ARG'], 255, o['JUMP_FORWARD'], 255]))
f()`, harm.Kills},
	{"fewer names than the code needs", `def f(): return undefined + undefined2
f.__code__ = f.__code__.replace(co_names=())
f()`, harm.Kills},
	{"marshal of garbage", `import marshal, random
random.seed(2)
for i in range(2000):
    try: marshal.loads(random.randbytes(50))
    except (ValueError, EOFError, TypeError, MemoryError): pass`, harm.Hangs},
	{"marshal of changed code", `import marshal
d = bytearray(marshal.dumps(compile('def f(a): return [x for x in a if x]\nf([1])', 'x', 'exec')))
for i in range(len(d)):
    e = bytearray(d)
    e[i] ^= 0x55
    try: exec(marshal.loads(bytes(e)))
    except BaseException: pass`, harm.Kills},
	{"__del__ time bombs", `class D:
    def __del__(s):
        import sys
        sys.stdout = None
        raise SystemExit(1)
bomb = [D() for _ in range(10)]`, harm.Corrupts},
	{"weakref callbacks", `import weakref
class D: pass
d = D()
r = weakref.ref(d, lambda r: exec('import builtins; builtins.print = None'))
del d`, harm.Kills},
	{"subinterpreters", `import _interpreters
i = _interpreters.create()
_interpreters.exec(i, 'while True: pass')`, harm.Hangs},
}

// bombs are small programs with large consequences.
var bombs = []attack{
	{"an exception whose __str__ never ends", `class E(Exception):
    def __str__(self):
        while True: pass
raise E`, harm.Hangs},
	{"an exception whose __str__ is huge", `class E(Exception):
    def __str__(self): return 'x' * 50_000_000
raise E`, harm.Floods},
	{"an exception whose class name is huge", "raise type('E' * 10_000_000, (Exception,), {})", harm.Floods},
	{"a huge exception message", "raise ValueError('x' * 50_000_000)", harm.Floods},
	{"huge exception notes", `e = ValueError()
for i in range(100000): e.add_note('n' * 100)
raise e`, harm.Floods},
	{"an echo that is huge", "[0] * 10_000_000", harm.Floods},
	{"a zlib bomb", `import zlib
d = b'\0' * (1 << 20)
for _ in range(3): d = zlib.compress(d * 200)
for _ in range(4): d = zlib.decompress(d)`, harm.Hangs},
	{"a billion laughs in lists", "x = ['lol']\nfor _ in range(40): x = [x, x]\nlen(str(x))", harm.Hangs},
	{"a format spec of a billion", "'%999999999d' % 1", harm.Grows},
	{"a regex that is huge", `import re
re.compile('(?:' + '|'.join('a' * i for i in range(3000)) + ')')`, harm.Hangs},
	{"an int of many digits", "import sys\nsys.set_int_max_str_digits(0)\nint('9' * 5_000_000)", harm.Hangs},
	{"eval of a huge literal", "len(eval('[' + '1,' * 1_000_000 + ']'))", harm.Hangs},
	{"stderr and stdout without end", `import sys
while True: print('x'); print('y', file=sys.stderr)`, harm.Hangs},
}

// testKill kills snippets at random moments. A failure logs the seed.
func (s *suite) testKill(t *testing.T) {
	skip.Short(t, "it kills sessions at random moments")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	box := s.open(t, tiers.Config{Limits: tiers.Limits{Memory: 4 * s.opt.Memory}})
	sources := []string{
		"while True: pass", "sum(range(10 ** 12))", "import time\ntime.sleep(3600)",
		"x = []\nwhile True: x.append([0] * 100)", "while True: print('x')",
		"import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')", "import gc\nwhile True: gc.collect()", `while True:
    try: 1 / 0
    except Exception: pass`,
	}

	for range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(20_000))*time.Microsecond)
		_, err := box.tryJob(ctx, t, tiers.Job{Source: sources[rng.IntN(len(sources))]})
		cancel()
		var broken *tiers.BrokenError
		if !errors.As(err, &broken) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Run returned %v, want a BrokenError with the context's error", err)
		}

		box.checkAlive(t)
	}
}

// canary is set in the environment of the test process. No snippet may be able to read it.
const canary = "rlm-canary-5f1c"

// testSecrets looks for traces of the host in the guest.
func (s *suite) testSecrets(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}

	box := s.open(t, emptyConfig())
	r := box.mustRun(t, `import os, sys, glob
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
for p in ('/proc/self/environ', '/proc/1/environ', '/proc/self/cmdline', '/proc/self/maps',
          '/etc/hostname', '/etc/hosts'):
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
