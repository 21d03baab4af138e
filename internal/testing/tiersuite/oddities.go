package tiersuite

// oddities are snippets that are harmless in a plain session of CPython. A tier's own runtime must
// handle them carefully, because they involve names and modules that it uses, objects that it
// inspects, or code that it replaces.
var oddities = []excess{
	{"another encoding on stdout", `import sys
try: sys.stdout.reconfigure(encoding='ascii', errors='strict')
except Exception: pass
print('é')`},
	{"modules cleared", "import sys\nsys.modules.clear()"},
	{"modules replaced by None", "import sys\nfor m in list(sys.modules): sys.modules[m] = None"},
	{"__builtins__ removed", "del __builtins__"},
	{"import hooks", `import sys
class F:
    def find_spec(self, *a, **k): raise SystemExit(3)
sys.meta_path[:] = [F()]
sys.path_hooks[:] = [F]
sys.path_importer_cache.clear()`},
	{"excepthook and displayhook", `import sys
sys.excepthook = sys.displayhook = sys.unraisablehook = lambda *a: 1 / 0
1/0`},
	{"a trace function that swallows all", `import sys
def t(f, e, a):
    while False: pass
    return t
sys.settrace(t)
sys.setprofile(t)`},
	{"a profile function left on", "import sys\nsys.setprofile(lambda *a: 1 / 0)"},
	{"a recursion limit without end", "import sys\nsys.setrecursionlimit(10 ** 9)"},
	{"a recursion limit that is too small", `import sys
for n in range(1, 100):
    try: sys.setrecursionlimit(n); break
    except RecursionError: pass`},
	{"a tiny switch interval", "import sys\nsys.setswitchinterval(1e-9)"},
	{"signals", `import signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except Exception: pass
try: signal.raise_signal(signal.SIGTERM)
except Exception: pass`},
	{"all objects change their class", `import gc
class X: pass
for o in gc.get_objects():
    try: o.__class__ = X
    except Exception: pass`},
	{"the closures of functions", `import gc, types
for o in gc.get_objects():
    if isinstance(o, types.FunctionType) and o.__closure__:
        for c in o.__closure__:
            try: c.cell_contents = None
            except Exception: pass`},
	{"the garbage collector off and a cycle", `import gc
gc.disable()
for _ in range(10000):
    l = []; l.append(l)`},
	{"FINAL redefined", "def FINAL(v): return v\nFINAL(5)"},
	{"internals of FINAL", `for n in ('FINAL', 'FINAL_VAR', 'SUBMIT', 'SHOW_VARS', 'llm_query'):
    f = globals()[n]
    for a in ('__globals__', '__dict__'):
        d = getattr(f, a, {})
        for k in list(d):
            try: d[k] = None
            except Exception: pass
FINAL(5)`},
	{"asyncio spoiled", `import asyncio
for n in list(vars(asyncio)):
    if not n.startswith('__'): setattr(asyncio, n, None)`},
	{"an event loop left running", "import asyncio\nasyncio.events._set_running_loop(object())"},
	{"an event loop policy that lies", `import asyncio, warnings
warnings.simplefilter('ignore')
class P(asyncio.DefaultEventLoopPolicy):
    def get_event_loop(self): return None
    new_event_loop = get_event_loop
asyncio.set_event_loop_policy(P())`},
	{"exit handlers", "import atexit, weakref\natexit.register(lambda: 1 / 0)\natexit._run_exitfuncs()"},
	{"names that bite", `class E:
    def __eq__(self, o): raise SystemExit(5)
    __hash__ = None
    def __repr__(self): 1 / 0
    def __bool__(self): 1 / 0
for n in ('context', 'answer', 'history', '_', 'llm_query'): globals()[n] = E()`},
	{"keys that bite", `class K(str):
    def __eq__(self, o): raise ValueError('bite')
    def __hash__(self): return str.__hash__(self)
globals()[K('FINAL')] = 1`},
	{"keys of other types", "globals()[5] = 1\nglobals()[None] = 2\nglobals()[(1, 2)] = 3"},
	{"answer that bites", `class A(dict):
    def get(self, *a): raise SystemExit(4)
    __getitem__ = get
answer = A(ready=True)`},
	{"__main__ replaced", "import sys\nsys.modules['__main__'] = 5\nx = 1"},
	{"__class__ of the main module", `import sys, types
class M(types.ModuleType):
    def __getattribute__(self, n): raise SystemExit(6)
sys.modules['__main__'].__class__ = M`},
	{"LOAD_FAST out of range", `import opcode
def f(): return 1
o = opcode.opmap
f.__code__ = f.__code__.replace(co_code=bytes([o['RESUME'], 0, o['LOAD_FAST'], 255, o['RETURN_VALUE'], 0]))
print(f())`},
	{"a code object of nonsense", `import types
types.CodeType(2**31 - 1, 0, 0, 2**31 - 1, 2**31 - 1, 0, b'', (), (), (), '', '', '', 0, b'', b'', (), ())`},
	{"an int with a forged size", `import pickle
for p in (b'\x8b\xff\xff\xff\x7f', b'\x8a\xff', b'\x96\xff\xff\xff\xff\xff\xff\xff\x7f.'):
    try: pickle.loads(p)
    except Exception: pass`},
	{"a list changed while it is sorted", `l = list(range(1000))
class C:
    def __init__(s, v): s.v = v
    def __lt__(s, o):
        m.clear()
        return True
m = [C(i) for i in l]
m.sort()`},
	{"a dict changed in __eq__", `class K:
    def __hash__(s): return 1
    def __eq__(s, o):
        d.clear()
        return False
d = {K(): i for i in range(2)}
d[K()] = 1`},
	{"a class changed in __getattr__", `class A:
    def __getattr__(s, n):
        del A.__getattr__
        return getattr(s, n)
A().x`},
	{"__del__ that resurrects", `keep = []
class D:
    def __del__(s): keep.append(s); D()
D()
keep.clear()`},
	{"a memoryview of freed memory", `import io
b = io.BytesIO(b'x' * 100)
m = b.getbuffer()
try: b.close()
except BufferError: pass
del b
m.release()`},
	{"array games", `import array
a = array.array('B', bytes(100))
m = memoryview(a)
try: a.extend(a)
except BufferError: pass
class I:
    def __index__(s):
        m.release()
        del a[:]
        return 5
a[I()]`},
	{"str interning and mutation by hash", `class S(str):
    def __hash__(s): return 0
    def __eq__(s, o): return True
d = {S('a'): 1}
d.update({S(str(i)): i for i in range(1000)})`},
	{"type attribute cache", `for i in range(10000):
    C = type('C', (), {f'a{i}': 1})
    getattr(C, f'a{i}')`},
	{"type.__abstractmethods__ and slots", `class A: __slots__ = ('__dict__', '__weakref__')
class B(A): __slots__ = ()
b = B()
b.__class__ = A`},
	{"mro that lies", `class M(type):
    def mro(c): return [c, int]
try:
    class X(metaclass=M): pass
    X().x
except TypeError: pass`},
	{"testing modules", "import _testcapi\n_testcapi.crash_no_current_thread()"},
	{"deallocation deep in C", `class C:
    __slots__ = 'n'
c = None
for i in range(300000):
    d = C()
    d.n = c
    c = d
del c, d`},
	{"sys._clear_internal_caches and friends", `import sys
for n in ('_clear_internal_caches', '_clear_type_cache', '_debugmallocstats'):
    if hasattr(sys, n): getattr(sys, n)()`},
	{"shutting down the interpreter", `import sys
for n in ('_shutdown', '_exit', '_finalize'):
    try: getattr(__import__('threading'), n)()
    except Exception: pass`},
	{"an exception whose __str__ exits", `class E(Exception):
    def __str__(self): raise SystemExit(2)
raise E`},
	{"an exception without a class name", `class M(type):
    __name__ = __qualname__ = __module__ = property(lambda c: 1 / 0)
class E(Exception, metaclass=M): pass
raise E`},
	{"notes that are no list", "e = ValueError()\ne.__notes__ = 5\nraise e"},
	{"a cause that is the exception", "e = ValueError()\ne.__cause__ = e\ne.__context__ = e\nraise e"},
	{"a message of surrogates and NULs", "raise ValueError('\\ud800\\x00\\udfff\\x1b[2J')"},
	{"an echo of surrogates", "'\\ud800' * 3 + '\\x00'"},
	{"printing surrogates", "print('\\ud800\\udcff')"},
	{"an echo whose repr is no str", "class R:\n    def __repr__(self): return 5\nR()"},
	{"an echo whose repr exits", "class R:\n    def __repr__(self): raise SystemExit(3)\nR()"},
	{"an echo whose repr is a hostile str", `class S(str):
    def __add__(s, o): raise SystemExit(1)
    __str__ = encode = __radd__ = __add__
class R:
    def __repr__(self): return S('r')
R()`},
	{"a namespace of __eq__ bombs", `class E:
    def __eq__(s, o):
        while True: pass
    __ne__ = __lt__ = __bool__ = __len__ = __hash__ = __eq__
for i in range(100): globals()[f'e{i}'] = E()`},
	{"SHOW_VARS of bombs", "class L:\n    def __len__(s):\n        while True: pass\nl = L()\nSHOW_VARS()"},
	{"FINAL of a bomb", "class S:\n    def __str__(s):\n        while True: pass\nFINAL(S())"},
	{"a pickle that runs code", "import pickle\npickle.loads(b\"cos\\nsystem\\n(S'echo out'\\ntR.\")"},
	{"a pickle of nested lists", "import pickle\npickle.loads(b']' * 500_000 + b'a' * 499_999 + b'.')"},
	{"range arithmetic", "len(range(10 ** 30))"},
	{"a shift of a billion", "1 << 10 ** 18"},
	{"a hundred thousand names", "for i in range(100000): globals()[f'v{i}'] = i"},
	{"a hundred thousand classes", "cs = [type(f'C{i}', (), {}) for i in range(20000)]"},
	{"a dict of colliding keys", `d = {i * (2 ** 61 - 1): i for i in range(3000)}
d = {i * (2 ** 31 - 1): i for i in range(3000)}`},
	{"warnings without end", `import warnings
warnings.simplefilter('always')
for i in range(100000): warnings.warn('w')`},
}
