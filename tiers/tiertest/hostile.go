package tiertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// hostile runs snippets that try to get out or to break the runtime. Each may
// end in any way that is a result: never in a broken tier, never in a session
// that lies about its state.
func (s *suite) hostile(t *testing.T) {
	l := tiers.Limits{Wall: 10 * s.opt.Stop, Memory: 4 * s.opt.Memory}
	t.Run("Runtime", func(t *testing.T) { s.survive(t, l, againstRuntime) })
	t.Run("Interpreter", func(t *testing.T) { s.survive(t, l, againstInterpreter) })
	t.Run("Bombs", func(t *testing.T) { s.survive(t, l, bombs) })
	t.Run("Forgery", s.forgery)
	t.Run("Wire", s.wire)
	t.Run("Secrets", s.secrets)
	t.Run("Walls", s.walls)
	t.Run("Isolation", s.isolation)
	t.Run("Kill", s.kill)
}

// againstRuntime attacks what the tier itself put into the guest.
var againstRuntime = []excess{
	{"closing all descriptors", "import os\nfor fd in range(10):\n    try: os.close(fd)\n    except OSError: pass"},
	{"duplicating over descriptors", "import os\nfor a in range(4):\n    for b in range(4):\n        try: os.dup2(a, b)\n        except Exception: pass"},
	{"closing the streams", "import sys\nsys.stdout.close()\nsys.stderr.close()\nsys.stdin.close()"},
	{"streams set to None", "import sys\nsys.stdout = sys.stderr = sys.stdin = None\nsys.__stdout__ = sys.__stderr__ = None\n1/0"},
	{"streams set to liars", "import sys\nclass L:\n    def write(self, s): raise MemoryError\n    def flush(self): raise SystemExit(7)\n    closed = property(lambda s: 1/0)\nsys.stdout = sys.stderr = L()\n1/0"},
	{"detaching the streams", "import sys\nsys.stdout.detach()\nsys.stderr.detach()\n1/0"},
	{"another encoding on stdout", "import sys\ntry: sys.stdout.reconfigure(encoding='ascii', errors='strict')\nexcept Exception: pass\nprint('é')"},
	{"modules cleared", "import sys\nsys.modules.clear()"},
	{"modules replaced by None", "import sys\nfor m in list(sys.modules): sys.modules[m] = None"},
	{"modules of the runtime emptied", "import sys\nfor m in list(sys.modules.values()):\n    try: vars(m).clear()\n    except Exception: pass"},
	{"builtins cleared", "import builtins\nbuiltins.__dict__.clear()"},
	{"builtins replaced", "import builtins\nfor n in list(vars(builtins)):\n    setattr(builtins, n, None)"},
	{"globals cleared but for what is the test's", "for n in [n for n in globals() if n != 'kept']: del globals()[n]"},
	{"__builtins__ removed", "del __builtins__"},
	{"__import__ replaced", "import builtins\nbuiltins.__import__ = lambda *a, **k: 1 / 0\nimport json"},
	{"print and repr replaced", "import builtins\nbuiltins.print = builtins.repr = builtins.len = builtins.isinstance = lambda *a, **k: 1 / 0"},
	{"import hooks", "import sys\nclass F:\n    def find_spec(self, *a, **k): raise SystemExit(3)\nsys.meta_path[:] = [F()]\nsys.path_hooks[:] = [F]\nsys.path_importer_cache.clear()"},
	{"excepthook and displayhook", "import sys\nsys.excepthook = sys.displayhook = sys.unraisablehook = lambda *a: 1 / 0\n1/0"},
	{"a trace function left on", "import sys\ndef t(*a): raise ValueError('traced')\nsys.settrace(t)"},
	{"a trace function that swallows all", "import sys\ndef t(f, e, a):\n    while False: pass\n    return t\nsys.settrace(t)\nsys.setprofile(t)"},
	{"a profile function left on", "import sys\nsys.setprofile(lambda *a: 1 / 0)"},
	{"monitoring left on", "import sys\nm = sys.monitoring\nm.use_tool_id(2, 'x')\nm.register_callback(2, m.events.PY_START, lambda *a: 1 / 0)\nm.set_events(2, m.events.PY_START)"},
	{"a recursion limit without end", "import sys\nsys.setrecursionlimit(10 ** 9)"},
	{"a recursion limit that is too small", "import sys\nfor n in range(1, 100):\n    try: sys.setrecursionlimit(n); break\n    except RecursionError: pass"},
	{"a tiny switch interval", "import sys\nsys.setswitchinterval(1e-9)"},
	{"signals", "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except Exception: pass\ntry: signal.raise_signal(signal.SIGTERM)\nexcept Exception: pass"},
	{"a signal to itself", "import os, signal\nos.kill(os.getpid(), 9)"},
	{"frames of the runtime", "import sys\nf = sys._getframe()\nwhile f:\n    for g in (f.f_globals, f.f_builtins):\n        for k in list(g):\n            if not k.startswith('__'): g[k] = None\n    f = f.f_back"},
	{"locals of the runtime", "import sys\nf = sys._getframe()\nwhile f:\n    for k in list(f.f_locals):\n        try: f.f_locals[k] = None\n        except Exception: pass\n    f = f.f_back"},
	{"a traceback into the runtime", "import sys\ntry: 1 / 0\nexcept Exception as e:\n    tb = e.__traceback__\n    while tb:\n        g = tb.tb_frame.f_back and tb.tb_frame.f_back.f_globals or {}\n        for k in list(g):\n            if callable(g[k]): g[k] = print\n        tb = tb.tb_next"},
	{"all functions lose their code", "import gc, types\nc = (lambda *a, **k: None).__code__\nfor o in gc.get_objects():\n    if isinstance(o, types.FunctionType) and not o.__closure__:\n        try: o.__code__ = c\n        except Exception: pass"},
	{"all dicts are cleared", "import gc\nfor o in gc.get_objects():\n    if type(o) is dict:\n        try: o.clear()\n        except Exception: pass"},
	{"all lists are cleared", "import gc\nfor o in gc.get_objects():\n    if type(o) is list: o.clear()"},
	{"all objects change their class", "import gc\nclass X: pass\nfor o in gc.get_objects():\n    try: o.__class__ = X\n    except Exception: pass"},
	{"the closures of functions", "import gc, types\nfor o in gc.get_objects():\n    if isinstance(o, types.FunctionType) and o.__closure__:\n        for c in o.__closure__:\n            try: c.cell_contents = None\n            except Exception: pass"},
	{"frozen objects thawed", "import gc\ngc.unfreeze()\ngc.set_threshold(1)\ngc.callbacks.append(lambda *a: 1 / 0)\ngc.collect()"},
	{"gc.set_debug", "import gc\ngc.set_debug(gc.DEBUG_LEAK)\ngc.collect()"},
	{"the garbage collector off and a cycle", "import gc\ngc.disable()\nfor _ in range(10000):\n    l = []; l.append(l)"},
	{"FINAL redefined", "def FINAL(v): return v\nFINAL(5)"},
	{"internals of FINAL", "for n in ('FINAL', 'FINAL_VAR', 'SUBMIT', 'SHOW_VARS', 'llm_query'):\n    f = globals()[n]\n    for a in ('__globals__', '__dict__'):\n        d = getattr(f, a, {})\n        for k in list(d):\n            try: d[k] = None\n            except Exception: pass\nFINAL(5)"},
	{"linecache spoiled", "import linecache\nlinecache.cache = None\nlinecache.getline = None\n1/0"},
	{"traceback spoiled", "import traceback\nfor n in dir(traceback):\n    if not n.startswith('__'): setattr(traceback, n, None)\n1/0"},
	{"ast and json spoiled", "import ast, json, inspect\nfor m in (ast, json, inspect):\n    for n in list(vars(m)):\n        if not n.startswith('__'): setattr(m, n, None)"},
	{"asyncio spoiled", "import asyncio\nfor n in list(vars(asyncio)):\n    if not n.startswith('__'): setattr(asyncio, n, None)"},
	{"an event loop left running", "import asyncio\nasyncio.events._set_running_loop(object())"},
	{"an event loop policy that lies", "import asyncio, warnings\nwarnings.simplefilter('ignore')\nclass P(asyncio.DefaultEventLoopPolicy):\n    def get_event_loop(self): return None\n    new_event_loop = get_event_loop\nasyncio.set_event_loop_policy(P())"},
	{"an audit hook", "import sys\ndef h(*a): raise SystemExit(9)\nsys.addaudithook(h)"},
	{"an audit hook that loops", "import sys\ndef h(e, a):\n    if e == 'compile':\n        while True: pass\nsys.addaudithook(h)\ncompile('1', 'x', 'eval')"},
	{"exit handlers", "import atexit, weakref\natexit.register(lambda: 1 / 0)\natexit._run_exitfuncs()"},
	{"a dict subclass as globals", "class D(dict):\n    def __getitem__(self, k): raise KeyboardInterrupt\nexec('x', D())"},
	{"names that bite", "class E:\n    def __eq__(self, o): raise SystemExit(5)\n    __hash__ = None\n    def __repr__(self): 1 / 0\n    def __bool__(self): 1 / 0\nfor n in ('context', 'answer', 'history', '_', 'llm_query'): globals()[n] = E()"},
	{"keys that bite", "class K(str):\n    def __eq__(self, o): raise ValueError('bite')\n    def __hash__(self): return str.__hash__(self)\nglobals()[K('FINAL')] = 1"},
	{"keys of other types", "globals()[5] = 1\nglobals()[None] = 2\nglobals()[(1, 2)] = 3"},
	{"answer that bites", "class A(dict):\n    def get(self, *a): raise SystemExit(4)\n    __getitem__ = get\nanswer = A(ready=True)"},
	{"__main__ replaced", "import sys\nsys.modules['__main__'] = 5\nx = 1"},
	{"__class__ of the main module", "import sys, types\nclass M(types.ModuleType):\n    def __getattribute__(self, n): raise SystemExit(6)\nsys.modules['__main__'].__class__ = M"},
}

// againstInterpreter attacks CPython itself; some of these kill a native one.
var againstInterpreter = []excess{
	{"os._exit", "import os\nos._exit(3)"},
	{"os.abort", "import os\nos.abort()"},
	{"faulthandler._sigsegv", "import faulthandler\nfaulthandler._sigsegv()"},
	{"faulthandler's stack overflow", "import faulthandler\nfaulthandler._stack_overflow()"},
	{"faulthandler.dump_traceback_later", "import faulthandler\nfaulthandler.dump_traceback_later(0.01, exit=True)\nimport time\ntime.sleep(0.1)"},
	{"ctypes", "import ctypes\nctypes.string_at(0)"},
	{"garbage bytecode", "def f(): pass\nf.__code__ = f.__code__.replace(co_code=bytes(range(256)) * 4)\nf()"},
	{"random bytecode", "import random\nrandom.seed(1)\nfor i in range(300):\n    def f(a=1): return a\n    try:\n        f.__code__ = f.__code__.replace(co_code=bytes([151, 0]) + random.randbytes(40))\n        f()\n    except BaseException: pass"},
	{"LOAD_FAST out of range", "import opcode\ndef f(): return 1\no = opcode.opmap\nf.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0, o['LOAD_FAST'], 255, o['RETURN_VALUE'], 0]))\nprint(f())"},
	{"LOAD_CONST out of range", "import opcode\ndef f(): return 1\no = opcode.opmap\nf.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0, o['EXTENDED_ARG'], 255, o['LOAD_CONST'], 255, o['RETURN_VALUE'], 0]))\nprint(f())"},
	{"a stack that underflows", "import opcode\ndef f(): return 1\no = opcode.opmap\nf.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0] + [o['POP_TOP'], 0] * 500 + [o['RETURN_VALUE'], 0]))\nf()"},
	{"a jump out of the code", "import opcode\ndef f(): return 1\no = opcode.opmap\nf.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0, o['EXTENDED_ARG'], 255, o['JUMP_FORWARD'], 255]))\nf()"},
	{"a code object of nonsense", "import types\ntypes.CodeType(2**31 - 1, 0, 0, 2**31 - 1, 2**31 - 1, 0, b'', (), (), (), '', '', '', 0, b'', b'', (), ())"},
	{"fewer names than the code needs", "def f(): return undefined + undefined2\nf.__code__ = f.__code__.replace(co_names=())\nf()"},
	{"marshal of garbage", "import marshal, random\nrandom.seed(2)\nfor i in range(2000):\n    try: marshal.loads(random.randbytes(50))\n    except (ValueError, EOFError, TypeError, MemoryError): pass"},
	{"marshal of changed code", "import marshal\nd = bytearray(marshal.dumps(compile('def f(a): return [x for x in a if x]\\nf([1])', 'x', 'exec')))\nfor i in range(len(d)):\n    e = bytearray(d)\n    e[i] ^= 0x55\n    try: exec(marshal.loads(bytes(e)))\n    except BaseException: pass"},
	{"an int with a forged size", "import pickle\nfor p in (b'\\x8b\\xff\\xff\\xff\\x7f', b'\\x8a\\xff', b'\\x96\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x7f.'):\n    try: pickle.loads(p)\n    except Exception: pass"},
	{"a list changed while it is sorted", "l = list(range(1000))\nclass C:\n    def __init__(s, v): s.v = v\n    def __lt__(s, o):\n        m.clear()\n        return True\nm = [C(i) for i in l]\nm.sort()"},
	{"a dict changed in __eq__", "class K:\n    def __hash__(s): return 1\n    def __eq__(s, o):\n        d.clear()\n        return False\nd = {K(): i for i in range(2)}\nd[K()] = 1"},
	{"a class changed in __getattr__", "class A:\n    def __getattr__(s, n):\n        del A.__getattr__\n        return getattr(s, n)\nA().x"},
	{"__del__ that resurrects", "keep = []\nclass D:\n    def __del__(s): keep.append(s); D()\nD()\nkeep.clear()"},
	{"__del__ time bombs", "class D:\n    def __del__(s):\n        import sys\n        sys.stdout = None\n        raise SystemExit(1)\nbomb = [D() for _ in range(10)]"},
	{"weakref callbacks", "import weakref\nclass D: pass\nd = D()\nr = weakref.ref(d, lambda r: exec('import builtins; builtins.print = None'))\ndel d"},
	{"a memoryview of freed memory", "import io\nb = io.BytesIO(b'x' * 100)\nm = b.getbuffer()\ntry: b.close()\nexcept BufferError: pass\ndel b\nm.release()"},
	{"array games", "import array\na = array.array('B', bytes(100))\nm = memoryview(a)\ntry: a.extend(a)\nexcept BufferError: pass\nclass I:\n    def __index__(s):\n        m.release()\n        del a[:]\n        return 5\na[I()]"},
	{"str interning and mutation by hash", "class S(str):\n    def __hash__(s): return 0\n    def __eq__(s, o): return True\nd = {S('a'): 1}\nd.update({S(str(i)): i for i in range(1000)})"},
	{"type attribute cache", "for i in range(10000):\n    C = type('C', (), {f'a{i}': 1})\n    getattr(C, f'a{i}')"},
	{"type.__abstractmethods__ and slots", "class A: __slots__ = ('__dict__', '__weakref__')\nclass B(A): __slots__ = ()\nb = B()\nb.__class__ = A"},
	{"mro that lies", "class M(type):\n    def mro(c): return [c, int]\ntry:\n    class X(metaclass=M): pass\n    X().x\nexcept TypeError: pass"},
	{"subinterpreters", "import _interpreters\ni = _interpreters.create()\n_interpreters.exec(i, 'while True: pass')"},
	{"testing modules", "import _testcapi\n_testcapi.crash_no_current_thread()"},
	{"deallocation deep in C", "class C:\n    __slots__ = 'n'\nc = None\nfor i in range(300000):\n    d = C()\n    d.n = c\n    c = d\ndel c, d"},
	{"sys._clear_internal_caches and friends", "import sys\nfor n in ('_clear_internal_caches', '_clear_type_cache', '_debugmallocstats'):\n    if hasattr(sys, n): getattr(sys, n)()"},
	{"shutting down the interpreter", "import sys\nfor n in ('_shutdown', '_exit', '_finalize'):\n    try: getattr(__import__('threading'), n)()\n    except Exception: pass"},
}

// bombs are small programs with large consequences.
var bombs = []excess{
	{"an exception whose __str__ never ends", "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E"},
	{"an exception whose __str__ exits", "class E(Exception):\n    def __str__(self): raise SystemExit(2)\nraise E"},
	{"an exception whose __str__ is huge", "class E(Exception):\n    def __str__(self): return 'x' * 50_000_000\nraise E"},
	{"an exception whose class name is huge", "raise type('E' * 10_000_000, (Exception,), {})"},
	{"an exception without a class name", "class M(type):\n    __name__ = __qualname__ = __module__ = property(lambda c: 1 / 0)\nclass E(Exception, metaclass=M): pass\nraise E"},
	{"a huge exception message", "raise ValueError('x' * 50_000_000)"},
	{"huge exception notes", "e = ValueError()\nfor i in range(100000): e.add_note('n' * 100)\nraise e"},
	{"notes that are no list", "e = ValueError()\ne.__notes__ = 5\nraise e"},
	{"a cause that is the exception", "e = ValueError()\ne.__cause__ = e\ne.__context__ = e\nraise e"},
	{"a message of surrogates and NULs", "raise ValueError('\\ud800\\x00\\udfff\\x1b[2J')"},
	{"an echo of surrogates", "'\\ud800' * 3 + '\\x00'"},
	{"printing surrogates", "print('\\ud800\\udcff')"},
	{"an echo whose repr is no str", "class R:\n    def __repr__(self): return 5\nR()"},
	{"an echo whose repr exits", "class R:\n    def __repr__(self): raise SystemExit(3)\nR()"},
	{"an echo whose repr is a hostile str", "class S(str):\n    def __add__(s, o): raise SystemExit(1)\n    __str__ = encode = __radd__ = __add__\nclass R:\n    def __repr__(self): return S('r')\nR()"},
	{"an echo that is huge", "[0] * 10_000_000"},
	{"a namespace of __eq__ bombs", "class E:\n    def __eq__(s, o):\n        while True: pass\n    __ne__ = __lt__ = __bool__ = __len__ = __hash__ = __eq__\nfor i in range(100): globals()[f'e{i}'] = E()"},
	{"SHOW_VARS of bombs", "class L:\n    def __len__(s):\n        while True: pass\nl = L()\nSHOW_VARS()"},
	{"FINAL of a bomb", "class S:\n    def __str__(s):\n        while True: pass\nFINAL(S())"},
	{"a zlib bomb", "import zlib\nd = b'\\0' * (1 << 20)\nfor _ in range(3): d = zlib.compress(d * 200)\nfor _ in range(4): d = zlib.decompress(d)"},
	{"a pickle that runs code", "import pickle\npickle.loads(b\"cos\\nsystem\\n(S'echo out'\\ntR.\")"},
	{"a pickle of nested lists", "import pickle\npickle.loads(b']' * 500_000 + b'a' * 499_999 + b'.')"},
	{"a billion laughs in lists", "x = ['lol']\nfor _ in range(40): x = [x, x]\nlen(str(x))"},
	{"a format spec of a billion", "'%999999999d' % 1"},
	{"a regex that is huge", "import re\nre.compile('(?:' + '|'.join('a' * i for i in range(3000)) + ')')"},
	{"an int of many digits", "import sys\nsys.set_int_max_str_digits(0)\nint('9' * 5_000_000)"},
	{"range arithmetic", "len(range(10 ** 30))"},
	{"a shift of a billion", "1 << 10 ** 18"},
	{"a hundred thousand names", "for i in range(100000): globals()[f'v{i}'] = i"},
	{"a hundred thousand classes", "cs = [type(f'C{i}', (), {}) for i in range(20000)]"},
	{"eval of a huge literal", "len(eval('[' + '1,' * 1_000_000 + ']'))"},
	{"a dict of colliding keys", "d = {i * (2 ** 61 - 1): i for i in range(3000)}\nd = {i * (2 ** 31 - 1): i for i in range(3000)}"},
	{"warnings without end", "import warnings\nwarnings.simplefilter('always')\nfor i in range(100000): warnings.warn('w')"},
	{"stderr and stdout without end", "import sys\nwhile True: print('x'); print('y', file=sys.stderr)"},
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
	t.Setenv("RLM_CANARY", canary)
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
