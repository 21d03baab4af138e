# Makes kinds of state by composition: values in holders, classes by their features, functions
# by theirs, and what a session sets in modules. A sandbox runs this and prints the kinds.
#
# A kind has a class, a name, the snippet that makes it, the code that uses it, and the names
# under which a report may name its loss, beside those of its variables. QQ stands for a
# number in its names. The code that uses it calls show with what a user would see.

kinds = []


def kind(group, name, make, use, *names):
    number = f"_{len(kinds):03}"
    kinds.append([part.strip("\n").replace("QQ", number) for part in (group, name, make, use, *names)])


# --- values ---------------------------------------------------------------------

# name, what makes it, the expression, what shows x, and whether it can be hashed
VALUES = [
    ("a big int", "", "7 ** 99", "show(x, type(x))", True),
    ("floats", "", "(float('nan'), -0.0, float('inf'), 1e-320)", "show(x)", True),
    ("a complex number", "", "complex(-0.0, 2)", "show(x)", True),
    ("a text", "", "'\\xe9\\ud800\\U0001f600\\0'", "show(ascii(x), len(x))", True),
    ("bytes", "", "bytes(range(256))", "show(x[::50])", True),
    ("a bytearray", "", "bytearray(b'abc')", "x.append(100); show(x)", False),
    ("constants", "", "(None, ..., NotImplemented, True)", "show(x, x[1] is ...)", True),
    ("a range", "", "range(10, 0, -3)", "show(list(x), x)", True),
    ("a slice", "", "slice(1, None, 2)", "show(x, 'abcdef'[x])", False),
    ("a Decimal", "import decimal", "decimal.Decimal('-1.20E+5')", "show(x, x + 1)", True),
    ("a Fraction", "import fractions", "fractions.Fraction(6, -4)", "show(x, x * 2)", True),
    ("an aware datetime", "import datetime as dtQQ",
     "dtQQ.datetime(2024, 2, 29, 12, 30, 1, 5, dtQQ.timezone(dtQQ.timedelta(hours=2), 'X'), fold=1)",
     "show(repr(x), x.tzname(), x.isoformat())", True),
    ("dates and times", "import datetime as dtQQ", "(dtQQ.date.max, dtQQ.time(1, 2, 3), dtQQ.timedelta(-1, 5))", "show(repr(x))", True),
    ("a UUID", "import uuid", "uuid.UUID(int=5)", "show(x, x.hex)", True),
    ("a compiled pattern", "import re", "re.compile(r'(?P<w>a+)|b', re.I | re.X)", "show(x.sub('-', 'xAAb'), x.groupindex, x.flags)", True),
    ("a path", "import pathlib", "pathlib.PurePosixPath('/a/../b.txt')", "show(x, x.suffix)", True),
    ("a namespace", "import types", "types.SimpleNamespace(a=1, b=[2])", "x.b.append(3); show(x)", False),
    ("an array", "import array", "array.array('d', [1.5, 2])", "x.append(3); show(x)", False),
    ("a bounded deque", "import collections", "collections.deque([1, 2, 3], 2)", "x.append(4); show(x)", False),
    ("a Counter", "import collections", "collections.Counter('abca')", "x.update('b'); show(x.most_common())", False),
    ("an OrderedDict", "import collections", "collections.OrderedDict(b=1, a=2)", "x.move_to_end('b'); show(list(x))", False),
    ("a ChainMap", "import collections", "collections.ChainMap({'a': 1}, {'b': 2})", "x['b'] = 3; show(x.maps)", False),
    ("a defaultdict", "import collections", "collections.defaultdict(lambda: [0])", "x['k'].append(1); show(dict(x))", False),
    ("a UserDict", "import collections", "collections.UserDict(a=1)", "x['b'] = 2; show(x)", False),
    ("a read-only mapping", "import types", "types.MappingProxyType({'a': 1})", "show(dict(x), type(x))", False),
    ("a frozenset", "", "frozenset('abc')", "show(sorted(x))", True),
    ("a list that has itself", "selfQQ = [1]\nselfQQ.append(selfQQ)", "selfQQ", "show(x[1] is x, len(x))", False),
    ("a dict that has itself", "selfQQ = {}\nselfQQ['me'] = [selfQQ]", "selfQQ", "show(x['me'][0] is x)", False),
    ("a function", "def fQQ(a, b=2, *c, d=4, **e): return a, b, c, d, e", "fQQ", "show(x(1), x(1, 3, 5, d=6, z=7))", True),
    ("a closure", "def outerQQ():\n    n = 0\n    def inner():\n        nonlocal n\n        n += 1\n        return n\n    return inner",
     "outerQQ()", "show(x(), x())", True),
    ("a lambda", "", "lambda v, k=[]: k.append(v) or k", "show(x(1), x(2))", True),
    ("a built-in function", "import math", "(len, math.hypot, str.upper, dict.fromkeys)", "show(x[0]('ab'), x[1](3, 4), x[2]('a'), x[3]('a'))", True),
    ("a class", "class CQQ:\n    n = 1\n    def m(self): return self.n", "CQQ", "x.n += 1; show(x().m(), x.__name__, x.__module__)", True),
    ("an instance", "class CQQ:\n    def __init__(self): self.n = [1]", "CQQ()", "x.n.append(2); show(x.n, type(x) is CQQ)", True),
    ("an instance with slots", "class CQQ:\n    __slots__ = 'a', 'b'\n    def __init__(self): self.a = 1", "CQQ()",
     "show(x.a, hasattr(x, 'b'), hasattr(x, '__dict__')); x.b = 2", True),
    ("a member of an enum", "import enum\nclass EQQ(enum.Enum):\n    A = 1\n    B = 'b'", "EQQ.B", "show(x, x is EQQ('b'), x.name)", True),
    ("an exception", "", "KeyError('k', 2)", "show(repr(x), x.args)", True),
    ("a named tuple", "import typing\nclass PQQ(typing.NamedTuple):\n    a: int\n    b: str = 'q'", "PQQ(1)", "show(x, x._replace(a=2), x._field_defaults)", True),
    ("a dataclass", "import dataclasses\n@dataclasses.dataclass\nclass DQQ:\n    a: int = 1\n    b: list = dataclasses.field(default_factory=list)",
     "DQQ(2)", "x.b.append(1); show(x, x == DQQ(2, [1]))", False),
    ("a bound method", "class CQQ:\n    def __init__(self): self.n = 0\n    def up(self): self.n += 1; return self.n", "CQQ().up", "show(x(), x())", True),
    ("a bound built-in method", "", "[1, 2].append", "show(x(3), x.__self__)", False),
    ("a partial", "import functools", "functools.partial(int, base=2)", "show(x('101'), x.keywords)", True),
    ("getters", "import operator", "(operator.itemgetter(1, 0), operator.attrgetter('real'), operator.methodcaller('upper'))",
     "show(x[0]('ab'), x[1](5), x[2]('a'))", False),
    ("a module", "import json", "json", "show(x.dumps([1]), x.__name__)", True),
    ("an iterator of a list", "", "iter([1, 2, 3, 4])", "show(next(x))", True),
    ("an iterator of a dict", "", "iter({'a': 1, 'b': 2, 'c': 3, 'd': 4}.items())", "show(next(x))", False),
    ("a zip of iterators", "", "zip(iter('abcd'), range(4))", "show(next(x))", True),
    ("a map", "", "map(str.upper, iter('abcd'))", "show(next(x))", True),
    ("a filter", "def oddQQ(n): return n % 2", "filter(oddQQ, iter(range(9)))", "show(next(x))", True),
    ("an enumeration", "", "enumerate('abcd', 5)", "show(next(x))", True),
    ("a reversed list", "", "reversed([1, 2, 3, 4])", "show(next(x))", True),
    ("itertools", "import itertools", "itertools.chain([1], itertools.count(5, 2))", "show(next(x))", True),
    ("a generator", "", "(n for n in range(9))", "show(next(x))", True),
    ("a text buffer", "import io", "io.StringIO('abc\\ndef\\n')", "show(repr(x.readline()), x.tell())", True),
    ("a bytes buffer", "import io", "io.BytesIO(b'abcdef')", "show(x.read(1), x.tell())", True),
    ("a lock", "import threading", "threading.Lock()", "show(x.acquire(False), x.release())", True),
    ("an event", "import threading", "threading.Event()", "show(x.is_set()); x.set()", True),
    ("a queue", "import queue", "queue.Queue(3)", "x.put(1); show(x.qsize(), x.full()); x.get()", True),
    ("a random generator", "import random", "random.Random(5)", "show(x.random(), x.choice('abc'))", True),
    ("a hash without data", "import hashlib", "hashlib.sha256()", "show(x.hexdigest()[:8])", True),
    ("a hash with data", "import hashlib", "hashlib.sha256(b'x')", "show(x.hexdigest()[:8])", True),
    ("a memoryview of bytes", "", "memoryview(b'abcd')", "show(x[1:3].tobytes(), x.readonly)", True),
    ("a memoryview that changes", "", "memoryview(bytearray(b'abcd'))", "x[0] = 90; show(x.tobytes(), x.obj)", False),
    ("a weak reference", "class CQQ: n = 4\nkeepQQ = CQQ()\nimport weakref", "weakref.ref(keepQQ)", "show(x() is keepQQ, x().n)", True),
    ("a property", "", "property(lambda s: 4, doc='d')", "show(x.fget(1), x.__doc__)", True),
    ("code", "", "compile('1 + n', 'f', 'eval')", "show(eval(x, {'n': 2}), x.co_names)", True),
    ("a generic alias", "import typing", "(list[int], typing.Optional[int], typing.Callable[[int], str])", "show(x)", True),
    ("a struct", "import struct", "struct.Struct('<hI')", "show(x.pack(1, 2), x.size)", True),
    ("a signature", "import inspect\ndef fQQ(a, *, b: int = 2) -> str: ...", "inspect.signature(fQQ)", "show(x, x.parameters['b'].default)", True),
    ("a template", "import string", "string.Template('$a')", "show(x.substitute(a=1))", True),
    ("a text wrapper of bytes", "import io", "io.TextIOWrapper(io.BytesIO(b'abc'))", "show(x.read())", True),
    ("a context variable", "import contextvars", "contextvars.ContextVar('vQQ', default=3)", "show(x.get(), x.name); x.set(x.get() + 1)", True),
    ("a thread-local object", "import threading\nlocalQQ = threading.local()\nlocalQQ.n = 3", "localQQ", "x.n += 1; show(x.n)", True),
    ("a finished future", "import concurrent.futures\ndoneQQ = concurrent.futures.Future()\ndoneQQ.set_result([1])", "doneQQ", "show(x.result(), x.done())", True),
    ("an executor", "import concurrent.futures", "concurrent.futures.ThreadPoolExecutor(2)", "show(x.submit(abs, -3).result())", True),
    ("a syntax tree", "import ast", "ast.parse('a + 1', mode='eval')", "show(ast.dump(x), ast.unparse(x))", True),
    ("a decimal context", "import decimal", "decimal.Context(prec=4)", "show(x.divide(decimal.Decimal(1), 3))", False),
    ("a comparing key", "import functools", "functools.cmp_to_key(lambda a, b: b - a)", "show(sorted([1, 3, 2], key=x))", True),
    ("a stack of exits", "import contextlib", "contextlib.ExitStack()", "show(x.__enter__() is x)", True),
    ("a compressor", "import zlib", "zlib.compressobj()", "show(len(x.compress(b'a')))", True),
    ("a csv reader", "import csv", "csv.reader(iter(['a,b', 'c,d', 'e,f', 'g,h']))", "show(next(x))", True),
    ("a coroutine function", "async def fQQ(): return 5", "fQQ", "import asyncio; show(asyncio.run(x()))", True),
    ("an IP network", "import ipaddress", "ipaddress.ip_network('10.0.0.0/8')", "show(x, x.num_addresses)", True),
    ("a message", "import email.message\nmessageQQ = email.message.EmailMessage()\nmessageQQ['To'] = 'a@b'\nmessageQQ.set_content('hi')",
     "messageQQ", "show(x['To'], x.get_content())", True),
    ("an XML tree", "import xml.etree.ElementTree as etQQ", "etQQ.fromstring('<a b=\"1\"><c/>t</a>')", "show(etQQ.tostring(x), x.attrib)", True),
    ("a configuration", "import configparser\nconfigQQ = configparser.ConfigParser()\nconfigQQ.read_string('[a]\\nb = 1')", "configQQ", "show(x['a'].getint('b'))", True),
    ("an argument parser's result", "import argparse", "argparse.Namespace(a=1)", "show(x)", False),
    ("an ordered tree of paths", "import graphlib", "graphlib.TopologicalSorter({1: [2]})", "show(type(x).__name__)", True),
    ("a struct of native sizes", "import struct", "struct.Struct('l')", "show(x.size, x.format)", True),
    ("an array of native sizes", "import array", "array.array('l', [1, 2])", "show(x, x.itemsize)", False),
    ("a mock", "import unittest.mock", "unittest.mock.Mock(return_value=3)", "show(x(), x.called)", True),
    ("a mock of a tree", "import unittest.mock\nmockQQ = unittest.mock.MagicMock()\nmockQQ.a.b.return_value = 5\nmockQQ.a.b(1)", "mockQQ", "show(x.a.b(2), x.a.b.mock_calls[0], len(x))", True),
    ("combined flags", "import enum\nclass FQQ(enum.Flag):\n    A = 1\n    B = 2\n    C = 8", "FQQ.A | FQQ.C", "show(x == FQQ.A | FQQ.C, x.value, FQQ.B in x, (~x).value % 16)", True),
    ("a task that has ended", "import asyncio\nasync def workQQ(): return [5]\nasync def startQQ():\n    t = asyncio.ensure_future(workQQ())\n    t.set_name('ended')\n    await t\n    return t\ntaskQQ = await startQQ()",
     "taskQQ", "show(x.done(), x.result(), x.get_name())", True),
    ("a task that has failed", "import asyncio\nasync def workQQ(): return int('x')\nasync def startQQ():\n    t = asyncio.ensure_future(workQQ())\n    await asyncio.wait([t])\n    return t\ntaskQQ = await startQQ()",
     "taskQQ", "show(x.done(), repr(x.exception()))", True),
    ("a future of asyncio", "import asyncio\nasync def startQQ():\n    f = asyncio.get_running_loop().create_future()\n    f.set_result(3)\n    return f\nfutureQQ = await startQQ()", "futureQQ", "show(x.result(), x.cancelled())", True),
    ("the event loop", "import asyncio\nasync def startQQ(): return asyncio.get_running_loop()\nloopQQ = await startQQ()", "loopQQ", "import asyncio; show(x is asyncio.get_event_loop_policy().get_event_loop(), x.is_closed())", True),
    ("a simple queue", "import queue\nqueueQQ = queue.SimpleQueue()\nqueueQQ.put(1)", "queueQQ", "x.put(2); show(x.get(), x.qsize())", True),
    ("a decoder of JSON", "import json", "json.JSONDecoder(parse_float=str)", "show(x.decode('[1.5]'))", True),
    ("a forward reference", "import typing", "typing.List['int']", "show(x, x.__args__[0].__forward_arg__)", True),
    ("a hash of another length", "import hashlib", "hashlib.blake2b(digest_size=8)", "show(x.hexdigest(), x.digest_size)", True),
    ("random numbers of the system", "import random", "random.SystemRandom()", "show(0 <= x.random() < 1)", True),
    ("a weak reference to a method", "import weakref\nclass CQQ:\n    def m(self): return 4\nkeepQQ = CQQ()", "weakref.WeakMethod(keepQQ.m)", "show(x()())", True),
]

# name, what holds the value (EXPR), how it comes out again, and whether the holder hashes it
HOLDERS = [
    ("a variable", "vQQ = EXPR", "x = vQQ", False),
    ("a list, twice", "itemQQ = EXPR\nvQQ = [itemQQ, itemQQ]", "show(vQQ[0] is vQQ[1]); x = vQQ[0]", False),
    ("a value of a dict", "vQQ = {'a': {'b': EXPR}}", "x = vQQ['a']['b']", False),
    ("a key of a dict", "vQQ = {EXPR: 1}", "x = next(iter(vQQ)); show(vQQ[x], len(vQQ))", True),
    ("a member of a set", "vQQ = {EXPR, 'other'}", "x = next(m for m in vQQ if m != 'other'); show(x in vQQ)", True),
    ("a tuple", "vQQ = (EXPR, ('t',))", "x = vQQ[0]; show(vQQ[1])", False),
    ("an attribute", "class HoldQQ: pass\nvQQ = HoldQQ()\nvQQ.held = EXPR", "x = vQQ.held", False),
    ("a slot", "class HoldQQ:\n    __slots__ = ('held',)\nvQQ = HoldQQ()\nvQQ.held = EXPR", "x = vQQ.held", False),
    ("a class attribute", "class vQQ:\n    held = [EXPR]", "x = vQQ.held[0]", False),
    ("a closure", "def makeQQ(held): return lambda: held\nvQQ = makeQQ(EXPR)", "x = vQQ(); show(vQQ() is x)", False),
    ("a default argument", "def vQQ(held=EXPR): return held", "x = vQQ(); show(vQQ() is x)", False),
    ("a deque", "import collections\nvQQ = collections.deque([0, EXPR])", "x = vQQ[1]", False),
    ("a partial", "import functools\nvQQ = functools.partial(lambda held: held, EXPR)", "x = vQQ()", False),
    ("an argument of an exception", "vQQ = ValueError('m', EXPR)", "x = vQQ.args[1]", False),
    ("an attribute of a function", "def vQQ(): pass\nvQQ.held = EXPR", "x = vQQ.held", False),
    ("a cached answer", "import functools\n@functools.cache\ndef vQQ():\n    callsQQ.append(1)\n    return EXPR\ncallsQQ = []\nvQQ()",
     "x = vQQ(); show(len(callsQQ))", False),
    ("a dataclass's field", "import dataclasses, typing\n@dataclasses.dataclass\nclass HoldQQ:\n    held: typing.Any\nvQQ = HoldQQ(EXPR)", "x = vQQ.held", False),
    ("a subclass of list", "class HoldQQ(list):\n    def __getitem__(self, i): return super().__getitem__(0)\nvQQ = HoldQQ([EXPR])", "x = vQQ[7]", False),
]


def make_values():
    at = 0
    for name, setup, expression, use, hashable in VALUES:
        chosen = [HOLDERS[0]]
        while len(chosen) < 3:
            at += 1
            holder = HOLDERS[1 + at % (len(HOLDERS) - 1)]
            if hashable or not holder[3]:
                chosen.append(holder)
        for holder, make, get, _ in chosen:
            kind("values", f"{name} in {holder}", setup + "\n" + make.replace("EXPR", expression), get + "\n" + use)


# --- classes --------------------------------------------------------------------

OPTIONS = ["", "frozen=True", "order=True", "slots=True", "kw_only=True", "eq=False", "repr=False", "unsafe_hash=True",
           "frozen=True, slots=True", "init=False", "match_args=False"]
FIELDS = [
    ("a default", "a: int = 1\n    b: str = 'b'", "DQQ()"),
    ("a factory", "a: list = dataclasses.field(default_factory=lambda: [1])\n    b: int = 2", "DQQ()"),
    ("a field outside of __init__", "a: int = dataclasses.field(default=1, repr=False)\n    b: int = dataclasses.field(init=False, default=7)", "DQQ()"),
    ("a ClassVar", "a: int = 1\n    total: typing.ClassVar[list] = [3]\n    b: int = dataclasses.field(default=2, compare=False)", "DQQ()"),
    ("a base", "b: int = 9", "DQQ()"),
]


def make_dataclasses():
    for number, options in enumerate(OPTIONS):
        for name, fields, made in (FIELDS[number % 5], FIELDS[(number + 2) % 5]):
            base = f"@dataclasses.dataclass({options})\nclass BaseQQ:\n    a: int = 5\n" if name == "a base" else ""
            kind("classes", f"a dataclass({options}) with {name}", f"""
import dataclasses, typing
{base}
@dataclasses.dataclass({options})
class DQQ{"(BaseQQ)" if base else ""}:
    {fields}
    def both(self): return self.a, self.b
vQQ = {made}
""", """
def tried(f):
    try: return f()
    except Exception as error: return type(error).__name__
plain = "__repr__" in vars(DQQ)
show(plain and repr(vQQ), tried(vQQ.both), tried(lambda: vQQ == DQQ()), tried(lambda: hash(vQQ) == hash(vQQ)))
show(tried(lambda: vQQ < DQQ()), tried(lambda: DQQ(1, 2).a), tried(lambda: setattr(vQQ, "a", 4)), tried(lambda: DQQ.__match_args__))
show(tried(lambda: dataclasses.replace(vQQ, a=3).a), [f.name for f in dataclasses.fields(DQQ)], getattr(DQQ, "total", 0), hasattr(vQQ, "__dict__"))
""")


MIXINS = ["enum.Enum", "enum.IntEnum", "enum.Flag", "enum.IntFlag", "str, enum.Enum", "int, enum.Enum", "float, enum.Enum", "tuple, enum.Enum"]
BODIES = [
    ("methods", "    def m(self): return (self.name, self.value)\n    @property\n    def p(self): return 'p'\n    @classmethod\n    def c(cls): return len(cls)",
     "show(EQQ.A.m(), EQQ.B.p, EQQ.c())"),
    ("__init__", "    def __init__(self, *args): self.extra = [len(args)]", "EQQ.A.extra.append(1); show(EQQ.A.extra, EQQ.B.extra)"),
    ("_missing_", "    @classmethod\n    def _missing_(cls, value): return cls.A", "show(EQQ('none') if not issubclass(EQQ, enum.Flag) else EQQ(1))"),
    ("an alias", "    C = 1", "show(list(EQQ.__members__), len(list(EQQ)))"),
]


def make_enums():
    for number, mixin in enumerate(MIXINS):
        for name, body, use in (BODIES[number % 4], BODIES[(number + 1) % 4]):
            values = ("'1'", "'2'") if mixin[:3] == "str" else ("(1,)", "(2,)") if mixin[:5] == "tuple" else ("1", "2")
            body = body.replace("C = 1", "C = A")
            kind("classes", f"class ({mixin}) with {name}",
                 f"import enum\nclass EQQ({mixin}):\n    A = {values[0]}\n    B = {values[1]}\n{body}\nvQQ = [EQQ.A, EQQ.B]\nEQQ.later = 5",
                 f"show(vQQ[0] is EQQ.A, EQQ['B'].value, repr(EQQ.A), EQQ.later, EQQ.A == EQQ.A.value)\n{use}")


BASES = [
    ("dict", "import collections", "dict", "v = CQQ(a=1)", "v['b'] = 2; show(dict(v))"),
    ("list", "", "list", "v = CQQ([1])", "v.append(2); show(list(v))"),
    ("set", "", "set", "v = CQQ([1])", "v.add(2); show(sorted(v))"),
    ("int", "", "int", "v = CQQ(5)", "show(v + 1, int(v))"),
    ("str", "", "str", "v = CQQ('ab')", "show(v.upper(), v + 'c')"),
    ("tuple", "", "tuple", "v = CQQ((1, 2))", "show(v[0], len(v))"),
    ("bytes", "", "bytes", "v = CQQ(b'ab')", "show(v.hex())"),
    ("float", "", "float", "v = CQQ(1.5)", "show(v * 2)"),
    ("frozenset", "", "frozenset", "v = CQQ('ab')", "show(sorted(v))"),
    ("defaultdict", "import collections", "collections.defaultdict", "v = CQQ(list)", "v['k'].append(1); show(dict(v))"),
    ("OrderedDict", "import collections", "collections.OrderedDict", "v = CQQ(a=1)", "v['b'] = 2; show(list(v))"),
    ("Counter", "import collections", "collections.Counter", "v = CQQ('aab')", "show(v.most_common(1))"),
    ("deque", "import collections", "collections.deque", "v = CQQ([1, 2], 2)", "v.append(3); show(list(v))"),
    ("UserList", "import collections", "collections.UserList", "v = CQQ([1])", "v.append(2); show(list(v))"),
    ("Exception", "", "Exception", "v = CQQ('m', 2)", "show(v.args, str(v))"),
    ("OSError", "", "OSError", "v = CQQ(2, 'no', 'f')", "show(v.errno, v.filename, type(v).__mro__[1].__name__)"),
    ("datetime", "import datetime as dtQQ", "dtQQ.datetime", "v = CQQ(2024, 1, 2)", "show(v.isoformat(), (v + dtQQ.timedelta(1)).day)"),
    ("Decimal", "import decimal", "decimal.Decimal", "v = CQQ('1.5')", "show(v + 1)"),
    ("Fraction", "import fractions", "fractions.Fraction", "v = CQQ(1, 3)", "show(v + 1)"),
    ("Random", "import random", "random.Random", "v = CQQ(3)", "show(v.random())"),
    ("JSONEncoder", "import json", "json.JSONEncoder", "v = CQQ(indent=1)", "show(v.encode([1]))"),
    ("HTMLParser", "import html.parser", "html.parser.HTMLParser", "v = CQQ()", "v.feed('<a>'); show(v.getpos())"),
    ("Handler", "import logging", "logging.Handler", "v = CQQ(20)", "show(v.level)"),
    ("NodeVisitor", "import ast", "ast.NodeVisitor", "v = CQQ()", "show(v.visit(ast.parse('1')))"),
    ("Formatter", "import string", "string.Formatter", "v = CQQ()", "show(v.format('{}', 1))"),
    ("Thread", "import threading", "threading.Thread", "v = CQQ(target=print)", "show(v.is_alive(), v.daemon)"),
    ("StringIO", "import io", "io.StringIO", "v = CQQ('abc')", "show(v.read(1))"),
    ("ContextDecorator", "import contextlib", "contextlib.ContextDecorator", "v = CQQ()", "show(callable(v))"),
    ("local", "import threading", "threading.local", "v = CQQ()", "show(type(v).__name__)"),
    ("SimpleNamespace", "import types", "types.SimpleNamespace", "v = CQQ(a=1)", "show(v.a, v == CQQ(a=1))"),
    ("ModuleType", "import types", "types.ModuleType", "v = CQQ('m')", "show(v.__name__)"),
    ("Path", "import pathlib", "pathlib.PurePosixPath", "v = CQQ('/a/b')", "show(v.name, str(v))"),
    ("TestCase", "import unittest", "unittest.TestCase", "v = CQQ('run')", "show(v.id()[-3:])"),
    ("Cmd", "import cmd", "cmd.Cmd", "v = CQQ()", "show(v.prompt)"),
]


def make_subclasses():
    for number, (name, setup, base, make, use) in enumerate(BASES):
        own = number % 3
        body = ["    label = 'l'\n    def mine(self): return self.extra", "    __slots__ = ()\n    def mine(self): return 'slots'",
                "    def __repr__(self): return 'r'\n    def mine(self): return self.extra"][own]
        if own == 1 and base in ("int", "tuple", "bytes"):
            body = "    def mine(self): return self.extra"
        slots = "__slots__" in body
        attribute = "" if slots else "\nvQQ.extra = [1]"
        kind("classes", f"a subclass of {name}", f"{setup}\nclass CQQ({base}):\n{body}\n{make.replace('v =', 'vQQ =')}{attribute}",
             f"v = vQQ\n{use}\nshow(v.mine(), type(v) is CQQ)")


FEATURES = [
    ("a metaclass", "class MetaQQ(type):\n    def __call__(cls, *a): return ('made', super().__call__(*a))\n    @property\n    def size(cls): return 3\nclass CQQ(metaclass=MetaQQ):\n    pass",
     "show(CQQ()[0], CQQ.size, type(CQQ).__name__)"),
    ("a metaclass with a namespace", "import collections\nclass MetaQQ(type):\n    @classmethod\n    def __prepare__(m, n, b): return collections.OrderedDict()\n    def __new__(m, n, b, d):\n        d['order'] = [k for k in d if k[0] != '_']\n        return super().__new__(m, n, b, dict(d))\nclass CQQ(metaclass=MetaQQ):\n    b = 1\n    a = 2",
     "show(CQQ.order, CQQ.a)"),
    ("__init_subclass__", "class BQQ:\n    found = []\n    def __init_subclass__(cls, tag=None, **k):\n        BQQ.found.append((cls.__name__[:1], tag))\nclass CQQ(BQQ, tag='t'): pass",
     "show(BQQ.found)\nclass D(BQQ, tag='u'): pass\nshow(len(BQQ.found)); BQQ.found.pop()"),
    ("__set_name__", "class FieldQQ:\n    def __set_name__(self, owner, name): self.name = name\n    def __get__(self, obj, owner): return self.name if obj is None else obj.__dict__.get(self.name, 0)\n    def __set__(self, obj, v): obj.__dict__[self.name] = v * 2\nclass CQQ:\n    f = FieldQQ()\nvQQ = CQQ()\nvQQ.f = 2",
     "show(CQQ.f, vQQ.f); vQQ.f = 3; show(vQQ.__dict__)"),
    ("properties", "class CQQ:\n    def __init__(self): self._n = 1\n    @property\n    def n(self): 'doc'; return self._n\n    @n.setter\n    def n(self, v): self._n = v\n    @n.deleter\n    def n(self): self._n = 0\nvQQ = CQQ()",
     "vQQ.n += 5; show(vQQ.n); del vQQ.n; show(vQQ.n, CQQ.n.__doc__)"),
    ("cached_property", "import functools\nclass CQQ:\n    calls = 0\n    @functools.cached_property\n    def n(self):\n        CQQ.calls += 1\n        return [1]\nvQQ = CQQ()\nvQQ.n",
     "show(vQQ.n, CQQ.calls, CQQ().n, CQQ.calls)"),
    ("class and static methods", "class CQQ:\n    made = 0\n    @classmethod\n    def new(cls): cls.made += 1; return cls()\n    @staticmethod\n    def plain(a): return a * 2\nvQQ = CQQ.new",
     "show(type(vQQ()).__name__[:1], CQQ.made, CQQ.plain(3))"),
    ("operators", "class CQQ:\n    def __init__(self, n): self.n = n\n    def __add__(self, o): return CQQ(self.n + getattr(o, 'n', o))\n    __radd__ = __add__\n    def __eq__(self, o): return self.n == o.n\n    def __hash__(self): return hash(self.n)\n    def __lt__(self, o): return self.n < o.n\n    def __len__(self): return self.n\n    def __getitem__(self, i): return i\n    def __call__(self, *a): return a\n    def __contains__(self, i): return i == 3\nvQQ = {CQQ(2): CQQ(5)}",
     "show(vQQ[CQQ(2)].n, (CQQ(1) + 2).n, sum([CQQ(1), CQQ(2)]).n, len(CQQ(4)), CQQ(1)[7:], CQQ(1)(2), 3 in CQQ(1), sorted([CQQ(2), CQQ(1)])[0].n)"),
    ("a context manager", "class CQQ:\n    log = []\n    def __enter__(self): self.log.append('in'); return self\n    def __exit__(self, *e): self.log.append('out'); return True\nvQQ = CQQ()",
     "with vQQ: 1 / 0\nshow(vQQ.log)"),
    ("__getattr__", "class CQQ:\n    def __init__(self): self.data = {'a': 1}\n    def __getattr__(self, name):\n        if name[:1] == '_': raise AttributeError(name)\n        return self.data.get(name, name)\nvQQ = CQQ()", "show(vQQ.a, vQQ.other)"),
    ("__getattr__ for all names", "class CQQ:\n    def __init__(self): self.data = {'a': 1}\n    def __getattr__(self, name): return self.__dict__['data'][name]\nvQQ = CQQ()", "show(vQQ.a, vQQ.data)"),
    ("__setattr__", "class CQQ:\n    def __init__(self): self.n = 1\n    def __setattr__(self, k, v): object.__setattr__(self, k, v * 10)\nvQQ = CQQ()", "show(vQQ.n); vQQ.n = 2; show(vQQ.n)"),
    ("__getstate__ and __setstate__", "class CQQ:\n    def __init__(self): self.n, self.cache = 1, lambda: 0\n    def __getstate__(self): return {'n': self.n + 10}\n    def __setstate__(self, s): self.__dict__.update(s, cache='made again')\nvQQ = CQQ()\nvQQ.__setstate__({'n': 1})\nvQQ.n = -9", "show(type(vQQ).__name__[:1], vQQ.cache)"),
    ("__reduce__", "class CQQ:\n    def __init__(self, n): self.n = n\n    def __reduce__(self): return CQQ, (self.n,)\nvQQ = [CQQ(3)]", "show(vQQ[0].n)"),
    ("__getnewargs__", "class CQQ:\n    def __new__(cls, n):\n        self = super().__new__(cls)\n        self.n = n\n        return self\n    def __getnewargs__(self): return (self.n,)\nvQQ = CQQ(3)", "show(vQQ.n)"),
    ("__new__ of a singleton", "class CQQ:\n    one = None\n    def __new__(cls):\n        cls.one = cls.one or super().__new__(cls)\n        return cls.one\nvQQ = [CQQ(), CQQ()]\nvQQ[0].n = 5", "show(vQQ[0] is vQQ[1] is CQQ(), CQQ().n)"),
    ("an abstract base", "import abc\nclass BQQ(abc.ABC):\n    @property\n    @abc.abstractmethod\n    def n(self): ...\nclass CQQ(BQQ):\n    n = 3\nBQQ.register(bytearray)\nvQQ = CQQ()",
     "show(vQQ.n, isinstance(vQQ, BQQ), isinstance(bytearray(), BQQ), sorted(BQQ.__abstractmethods__))"),
    ("a protocol", "import typing\n@typing.runtime_checkable\nclass PQQ(typing.Protocol):\n    def go(self) -> int: ...\nclass CQQ:\n    def go(self): return 1\nvQQ = CQQ()", "show(isinstance(vQQ, PQQ), isinstance(3, PQQ), issubclass(CQQ, PQQ))"),
    ("a generic class", "import typing\nTQQ = typing.TypeVar('TQQ', bound=int)\nclass CQQ(typing.Generic[TQQ]):\n    def __init__(self, n): self.n = n\nvQQ = CQQ[bool](True)", "show(vQQ.n, vQQ.__orig_class__.__args__, CQQ.__parameters__)"),
    ("a TypedDict", "import typing\nclass CQQ(typing.TypedDict, total=False):\n    a: int\n    b: str\nvQQ = CQQ(a=1)", "show(vQQ, CQQ.__total__, sorted(CQQ.__optional_keys__), CQQ.__annotations__['a'], CQQ(b='c'))"),
    ("multiple bases", "class AQQ:\n    def go(self): return ['a']\nclass BQQ(AQQ):\n    def go(self): return ['b'] + super().go()\nclass DQQ(AQQ):\n    def go(self): return ['d'] + super().go()\nclass CQQ(BQQ, DQQ):\n    def go(self): return ['c'] + super().go()\nvQQ = CQQ()",
     "show(vQQ.go(), [c.__name__[:1] for c in CQQ.__mro__])"),
    ("private names", "class CQQ:\n    __secret = 4\n    def __init__(self): self.__own = 5\n    def get(self): return self.__secret + self.__own\nvQQ = CQQ()", "show(vQQ.get(), len(vars(vQQ)))"),
    ("a nested class", "class CQQ:\n    class Inner:\n        n = 1\n        def up(self): CQQ.Inner.n += 1; return self.n\nvQQ = CQQ.Inner()", "show(vQQ.up(), type(vQQ).__qualname__[-5:], CQQ.Inner is type(vQQ))"),
    ("a class from type()", "CQQ = type('CQQ', (dict,), {'size': lambda self: len(self), 'n': 4})\nvQQ = CQQ(a=1)", "show(vQQ.size(), CQQ.n, dict(vQQ))"),
    ("a class in a function", "def makeQQ(n):\n    class Local:\n        def get(self): return n\n    return Local\nvQQ = [makeQQ(1)(), makeQQ(2)()]", "show([v.get() for v in vQQ], type(vQQ[0]) is type(vQQ[1]))"),
    ("a patched method", "class CQQ:\n    def m(self): return 'old'\nvQQ = CQQ()\nCQQ.m = lambda self: 'new'\nvQQ.m2 = lambda: 'own'", "show(vQQ.m(), vQQ.m2(), CQQ().m())"),
    ("a method of another object", "import types\nclass CQQ: n = 6\nvQQ = CQQ()\ndef runQQ(self): return self.n\nvQQ.run = types.MethodType(runQQ, vQQ)\nvQQ.get = types.MethodType(lambda self: self.n * 2, vQQ)",
     "show(vQQ.run(), vQQ.get())"),
    ("a method that another replaced", "class CQQ:\n    def m(self): return 'first'\nobjectQQ = CQQ()\nvQQ = objectQQ.m\nCQQ.m = lambda self: 'second'", "show(vQQ(), objectQQ.m())"),
    ("a registry by a decorator", "registryQQ = {}\ndef registerQQ(f): registryQQ[f.__name__] = f; return f\n@registerQQ\ndef stepQQ(x): return x + 1\nvQQ = registryQQ", "show([f(1) for f in vQQ.values()], list(vQQ.values())[0] is stepQQ)"),
    ("partialmethod", "import functools\nclass CQQ:\n    def m(self, a, b): return a, b\n    half = functools.partialmethod(m, 1)\nvQQ = CQQ()", "show(vQQ.half(2))"),
    ("singledispatchmethod", "import functools\nclass CQQ:\n    @functools.singledispatchmethod\n    def m(self, a): return 'any'\n    @m.register\n    def _(self, a: int): return 'int'\nvQQ = CQQ()", "show(vQQ.m('a'), vQQ.m(1))"),
    ("total_ordering", "import functools\n@functools.total_ordering\nclass CQQ:\n    def __init__(self, n): self.n = n\n    def __eq__(self, o): return self.n == o.n\n    def __lt__(self, o): return self.n < o.n\nvQQ = CQQ(1)", "show(vQQ >= CQQ(0), vQQ <= CQQ(0), max([CQQ(1), CQQ(3)]).n)"),
    ("__class_getitem__", "class CQQ:\n    def __class_getitem__(cls, item): return (cls.__name__[:1], item)\nvQQ = CQQ", "show(vQQ[5])"),
    ("an iterator of its own", "class CQQ:\n    def __init__(self): self.n = 0\n    def __iter__(self): return self\n    def __next__(self): self.n += 1; return self.n\nvQQ = CQQ()\nnext(vQQ)", "show(next(vQQ), next(vQQ))"),
    ("a dict with __missing__", "class CQQ(dict):\n    def __missing__(self, k): self[k] = k * 2; return self[k]\nvQQ = CQQ()\nvQQ[2]", "show(vQQ[3], sorted(vQQ))"),
    ("an object in a cycle", "class CQQ: pass\na, b = CQQ(), CQQ()\na.other, b.other, a.all = b, a, {b: [a]}\nvQQ = a\ndel a, b", "show(vQQ.other.other is vQQ, vQQ.all[vQQ.other][0] is vQQ)"),
    ("annotations and a doc", "class CQQ:\n    'A doc.'\n    n: 'int' = 1\n    m: list\nvQQ = CQQ", "import typing; show(vQQ.__doc__, vQQ.__annotations__, typing.get_type_hints(vQQ)['n'])"),
    ("a weakly kept object", "import weakref\nclass CQQ: pass\nkeepQQ = CQQ()\nvQQ = weakref.WeakKeyDictionary({keepQQ: 1})", "show(vQQ[keepQQ], len(vQQ))"),
    ("a finalizer", "import weakref\nclass CQQ: pass\nlogQQ = []\nkeepQQ = CQQ()\nvQQ = weakref.finalize(keepQQ, logQQ.append, 'gone')", "show(vQQ.alive, logQQ, vQQ.peek()[2])"),
    ("a finalizer without a name", "import weakref\nclass CQQ: pass\nlogQQ = []\nkeepQQ = [CQQ()]\nweakref.finalize(keepQQ[0], logQQ.append, 'gone')", "keepQQ.clear(); import gc; gc.collect(); show(logQQ)", "finalizers"),
    ("exceptions in a group", "vQQ = ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [KeyError('k')])])\nvQQ.add_note('n')", "show(repr(vQQ), vQQ.__notes__, vQQ.subgroup(KeyError).exceptions[0].message)"),
    ("a chained exception", "class CQQ(Exception):\n    def __init__(self, a, *, b): super().__init__(a); self.b = b\ntry:\n    try: {}['k']\n    except KeyError as e: raise CQQ('m', b=[2]) from e\nexcept CQQ as e: vQQ = e",
     "import traceback; show(vQQ.b, repr(vQQ.__cause__), ''.join(traceback.format_exception(type(vQQ), vQQ, vQQ.__traceback__)).count('line'))"),
    ("its abstract methods set anew", "import abc\nclass CQQ(abc.ABC):\n    @abc.abstractmethod\n    def m(self): pass\nCQQ.__abstractmethods__ = frozenset()", "show(type(CQQ()) is CQQ, CQQ.__abstractmethods__)"),
    ("its super object", "class AQQ:\n    def m(self): return 1\nclass BQQ(AQQ):\n    def m(self): return 2\nvQQ = super(BQQ, BQQ())\nunboundQQ = super(BQQ)", "show(vQQ.m(), vQQ.__thisclass__ is BQQ, unboundQQ.__self__)"),
    ("an error of a pattern", "import re\ntry: re.compile('(')\nexcept re.error as e: vQQ = e.with_traceback(None)", "import re; show(isinstance(vQQ, re.error), vQQ.pos, vQQ.pattern, vQQ.msg)"),
    ("the order of its positional patterns", "class CQQ:\n    __match_args__ = ('b', 'a')\n    def __init__(self): self.a, self.b = 1, 2\nvQQ = CQQ()", "show(CQQ.__match_args__, vQQ.a)"),
]


def make_features():
    for name, make, use, *names in FEATURES:
        kind("classes", name, make, use, *names)


# --- functions ------------------------------------------------------------------

FUNCTIONS = [
    ("defaults and annotations", "def vQQ(a: 'int', /, b: str = 'b', *c: int, d=[1], **e) -> list: 'doc'; d.append(a); return d", "import inspect; show(vQQ(2), vQQ.__doc__, vQQ.__annotations__, inspect.signature(vQQ))"),
    ("recursion", "def vQQ(n): return 1 if n < 2 else n * vQQ(n - 1)", "show(vQQ(20))"),
    ("mutual recursion", "def evenQQ(n): return n == 0 or vQQ(n - 1)\ndef vQQ(n): return n != 0 and evenQQ(n - 1)", "show(vQQ(7), evenQQ(7))"),
    ("two closures over one cell", "def makeQQ():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n    return up, lambda: n\nvQQ = makeQQ()\nvQQ[0]()", "vQQ[0](); show(vQQ[1]())"),
    ("a closure over itself", "def makeQQ():\n    def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n    return fib\nvQQ = makeQQ()", "show(vQQ(15))"),
    ("an empty cell", "def makeQQ():\n    def get(): return later\n    def fill():\n        nonlocal later\n        later = 5\n    if 0: later = 1\n    return get, fill\nvQQ = makeQQ()", "\ntry: show(vQQ[0]())\nexcept NameError as e: show('empty')\nvQQ[1](); show(vQQ[0]())"),
    ("a decorator", "import functools\ndef decoQQ(f):\n    @functools.wraps(f)\n    def inner(*a): inner.calls += 1; return f(*a) + 1\n    inner.calls = 0\n    return inner\n@decoQQ\ndef vQQ(a): 'd'; return a\nvQQ(1)", "show(vQQ(2), vQQ.calls, vQQ.__wrapped__(2), vQQ.__name__[:1], vQQ.__doc__)"),
    ("a decorator with arguments", "def repeatQQ(n):\n    def deco(f): return lambda *a: [f(*a) for _ in range(n)]\n    return deco\n@repeatQQ(3)\ndef vQQ(a): return a", "show(vQQ('x'))"),
    ("a decorator class", "class DecoQQ:\n    def __init__(self, f): self.f, self.n = f, 0\n    def __call__(self, *a): self.n += 1; return self.f(*a), self.n\n@DecoQQ\ndef vQQ(a): return a\nvQQ(1)", "show(vQQ(2))"),
    ("a generator function", "def vQQ(n):\n    got = yield n\n    yield from [got, 2]", "g = vQQ(1); show(next(g), g.send('s'), list(g))"),
    ("a coroutine function", "import asyncio\nasync def innerQQ(): await asyncio.sleep(0); return 4\nasync def vQQ(): return await innerQQ() + 1", "show(asyncio.run(vQQ()))"),
    ("an asynchronous generator function", "import asyncio\nasync def genQQ():\n    for i in range(3): yield i\nasync def vQQ(): return [i async for i in genQQ()]", "show(asyncio.run(vQQ()))"),
    ("functools.cache", "import functools\ncallsQQ = []\n@functools.cache\ndef vQQ(a, *, b=1): callsQQ.append(a); return [a]\nfirstQQ = vQQ(1)\nvQQ(2, b=3)", "show(vQQ(1) is firstQQ, vQQ(2, b=3), callsQQ)"),
    ("lru_cache with a bound", "import functools\ncallsQQ = []\n@functools.lru_cache(2)\ndef vQQ(a): callsQQ.append(a); return a\n[vQQ(n) for n in (1, 2, 3, 2)]", "vQQ(2); vQQ(3); show(callsQQ, vQQ.cache_parameters())"),
    ("a cache of methods", "import functools\nclass CQQ:\n    calls = 0\n    @functools.lru_cache(maxsize=None)\n    def m(self, a): CQQ.calls += 1; return a\nvQQ = CQQ()\nvQQ.m(1)", "vQQ.m(1); show(CQQ.calls)"),
    ("singledispatch", "import functools\n@functools.singledispatch\ndef vQQ(a): return 'any'\n@vQQ.register(list)\ndef _(a): return 'list'\n@vQQ.register\ndef _(a: int): return 'int'", "show(vQQ('a'), vQQ([]), vQQ(True), len(vQQ.registry))"),
    ("a context manager", "import contextlib\nlogQQ = []\n@contextlib.contextmanager\ndef vQQ(a):\n    logQQ.append(a)\n    try: yield a\n    finally: logQQ.append('end')", "\nwith vQQ(1) as got: show(got)\nshow(logQQ)"),
    ("nested partials", "import functools\nvQQ = functools.partial(functools.partial(lambda a, b, c=0: (a, b, c), 1), c=3)\nvQQ.note = 'n'", "show(vQQ(2), vQQ.note)"),
    ("function attributes", "def vQQ(): vQQ.n += 1; return vQQ.n\nvQQ.n = 1\nvQQ.link = vQQ", "show(vQQ(), vQQ.link is vQQ)"),
    ("globals that change", "totalQQ = 1\ndef vQQ():\n    global totalQQ\n    totalQQ += 1\n    return totalQQ", "show(vQQ(), totalQQ + 0 >= 2, vQQ.__globals__ is not None)"),
    ("functions from exec", "spaceQQ = {'n': 3}\nexec('def f(a): return a + n', spaceQQ)\nvQQ = spaceQQ['f']", "show(vQQ(1)); spaceQQ['n'] += 1; show(vQQ(1))"),
    ("a lambda from eval", "vQQ = eval('lambda a: a * 2')", "show(vQQ(4))"),
    ("lambdas of one line", "vQQ = [lambda: 1, lambda: 2, (lambda a=3: a)]", "show([f() for f in vQQ])"),
    ("a comprehension's lambdas", "vQQ = [lambda i=i: i for i in range(3)] + [(lambda n: lambda: n)(9)]", "show([f() for f in vQQ])"),
    ("changed defaults", "def vQQ(a=1, *, b=2): return a, b\nvQQ.__defaults__ = (5,)\nvQQ.__kwdefaults__ = {'b': 6}\nvQQ.__name__ = 'renamed'", "show(vQQ(), vQQ.__name__)"),
    ("replaced code", "def oneQQ(): return 1\ndef vQQ(): return 2\nvQQ.__code__ = oneQQ.__code__", "show(vQQ())"),
    ("a method as a function", "class CQQ:\n    def m(self): return type(self).__name__[:1]\nvQQ = CQQ.m", "show(vQQ(CQQ()), vQQ.__qualname__[-2:])"),
    ("super in a closure", "class BQQ:\n    def m(self): return 1\nclass CQQ(BQQ):\n    def m(self): return [up() for up in [super().m] * 2]\nvQQ = CQQ().m", "show(vQQ())"),
    ("a waiting generator", "def genQQ():\n    yield 1\n    yield 2\nvQQ = genQQ()\nnext(vQQ)", "show(next(vQQ))"),
    ("a waiting coroutine", "async def coQQ(): return 1\nvQQ = coQQ()", "import asyncio; show(asyncio.run(vQQ))"),
    ("reduce and operator", "import functools, operator\nvQQ = functools.partial(functools.reduce, operator.add)", "show(vQQ([1, 2, 3]))"),
    ("a function of the library", "import textwrap, statistics\nvQQ = [textwrap.dedent, statistics.mean]", "show(vQQ[0]('  a'), vQQ[1]([1, 3]))"),
    ("overloads", "import typing\n@typing.overload\ndef vQQ(a: int) -> int: ...\n@typing.overload\ndef vQQ(a: str) -> str: ...\ndef vQQ(a): return a", "show(vQQ(1))"),
    ("pattern matching", "def vQQ(a):\n    match a:\n        case {'k': [x, *_]}: return x\n        case int(n) if n > 1: return n\n        case _: return None", "show(vQQ({'k': [3, 4]}), vQQ(5), vQQ(0))"),
]

PLACES = [
    ("", "", ""),
    (" in a dict", "boxQQ = {'f': vQQ}\ndel vQQ", "vQQ = boxQQ['f']"),
    (" in a closure", "def boxQQ(f):\n    return lambda: f\nboxQQ = boxQQ(vQQ)", "show(boxQQ() is vQQ)"),
]


def make_functions():
    for number, (name, make, use) in enumerate(FUNCTIONS):
        place, more, get = PLACES[number % 3 if not any(word in name for word in ("recursion", "attributes", "globals")) else 0]
        kind("functions", name + place, make + "\n" + more, get + "\n" + use)


# --- what a session sets in modules -----------------------------------------------

MODULES = [
    ("a method of a library's class", "import json\nclass OddQQ: pass\nstockQQ = json.JSONEncoder.default\ndef defaultQQ(self, o): return 'odd' if type(o).__name__[:3] == 'Odd' else stockQQ(self, o)\njson.JSONEncoder.default = defaultQQ",
     "show(json.dumps(OddQQ()))\ntry: json.dumps(1j)\nexcept TypeError as e: show('refused')", "json.encoder.JSONEncoder.default"),
    ("an attribute of a library's class", "import string\nstring.Formatter.noteQQ = [1]", "string.Formatter.noteQQ.append(2); show(string.Formatter().noteQQ)", "string.Formatter.noteQQ"),
    ("a plain attribute of a library's class", "import csv\ncsv.Sniffer.preferredQQ = 'p'\ncsv.excel.delimiter = ';'", "import io; b = io.StringIO(); csv.writer(b, csv.excel).writerow([1, 2]); show(b.getvalue(), csv.Sniffer.preferredQQ)", "csv.Sniffer.preferredQQ", "csv.excel.delimiter"),
    ("a deleted attribute of a library's class", "import pprint\ndel pprint.PrettyPrinter.isrecursive", "show(hasattr(pprint.PrettyPrinter, 'isrecursive'))", "pprint.PrettyPrinter.isrecursive"),
    ("a class method of a library's class", "import fractions\nfractions.Fraction.halfQQ = classmethod(lambda cls: cls(1, 2))\nfractions.Fraction.twiceQQ = property(lambda self: self * 2)\nfractions.Fraction.plainQQ = staticmethod(len)",
     "show(fractions.Fraction.halfQQ(), fractions.Fraction(1, 3).twiceQQ, fractions.Fraction.plainQQ('ab'))", "fractions.Fraction.halfQQ"),
    ("an attribute of a library's object", "import reprlib\nreprlib.aRepr.maxlist = 2", "show(reprlib.repr([1, 2, 3, 4]))", "reprlib.aRepr.maxlist"),
    ("a private object of a library", "import calendar\ncalendar.setfirstweekday(6)", "show(calendar.firstweekday(), calendar.weekheader(2))", "calendar.c._firstweekday"),
    ("a replaced function", "import time\nstockTimeQQ = time.ctime\ntime.ctime = lambda *a: 'noon'", "show(time.ctime(), stockTimeQQ(0)[-4:])", "time.ctime"),
    ("a wrapped function", "import textwrap, functools\nstockQQ = textwrap.fill\n@functools.wraps(stockQQ)\ndef fillQQ(*a, **k): return '<' + stockQQ(*a, **k) + '>'\ntextwrap.fill = fillQQ", "show(textwrap.fill('a b', 1), textwrap.shorten('a', 5))", "textwrap.fill"),
    ("a replaced class", "import types, ipaddress\nclass AddressQQ(ipaddress.IPv4Address):\n    def mine(self): return 'mine'\nipaddress.IPv4Address = AddressQQ\nvQQ = ipaddress.IPv4Address('1.2.3.4')", "show(vQQ.mine(), type(vQQ) is ipaddress.IPv4Address, AddressQQ.__mro__[1].__name__)", "ipaddress.IPv4Address"),
    ("a new name", "import math\nmath.tauQQ = 6.28\nmath.doubleQQ = lambda v: v * 2", "show(math.tauQQ, math.doubleQQ(2))", "math.tauQQ"),
    ("a new name that setattr makes", "import cmath\nsetattr(cmath, 'ta' + 'uQQ'.lower(), 6.28)", "show([v for k, v in vars(cmath).items() if k[:2] == 'ta' and k[:4] not in ('tan', 'tanh', 'tau')])", "cmath.tau"),
    ("a private name", "import heapq\nheapq._ownQQ = {'a': [1]}", "heapq._ownQQ['a'].append(2); show(heapq._ownQQ)", "heapq._ownQQ"),
    ("a name set to None", "import colorsys\ncolorsys.ONE_THIRD = None", "show(colorsys.ONE_THIRD)", "colorsys.ONE_THIRD"),
    ("a name that was None", "import tempfile\ntempfile.tempdir = '/elsewhere'", "show(tempfile.gettempdir())", "tempfile.tempdir"),
    ("a deleted name", "import quopri\ndel quopri.encodestring", "show(hasattr(quopri, 'encodestring'))", "quopri.encodestring"),
    ("a number", "import keyword, sched\nkeyword.limitQQ = 1\nimport difflib\ndifflib.IS_LINE_JUNK = 7", "show(keyword.limitQQ, difflib.IS_LINE_JUNK)", "difflib.IS_LINE_JUNK"),
    ("entries of a dict", "import html.entities\nhtml.entities.name2codepoint['mineQQ'] = 5\ndel html.entities.name2codepoint['eacute']", "show(html.entities.name2codepoint['mineQQ'], 'eacute' in html.entities.name2codepoint)", "html.entities.name2codepoint"),
    ("entries of a private dict", "import xml.etree.ElementTree as etQQ\netQQ.register_namespace('qQQ', 'http://q')", "show(etQQ.tostring(etQQ.Element('{http://q}a')))", "xml.etree.ElementTree._namespace_map"),
    ("functions in a dict", "import shutil\nshutil.register_archive_format('oddQQ', lambda *a, **k: 'packed', description='d')", "show([f for f in shutil.get_archive_formats() if f[0][:3] == 'odd'], shutil.make_archive('b', 'oddQQ'))", "shutil.register_archive_format"),
    ("entries of a list", "import glob, fnmatch, keyword\nkeyword.kwlist.append('unlessQQ')\nkeyword.softkwlist.insert(0, 'firstQQ')", "show(keyword.kwlist[-1], keyword.softkwlist[0], len(set(keyword.kwlist)) == len(keyword.kwlist))", "keyword.kwlist", "keyword.softkwlist"),
    ("a list that is emptied", "import tabnanny\ntabnanny.__all__.clear()", "show(tabnanny.__all__)", "tabnanny.__all__"),
    ("members of a set", "import tokenize, token\nimport symtable\nimport http.cookiejar as jarQQ\njarQQ.setQQ = {1, 2}\njarQQ.setQQ.add(3)", "jarQQ.setQQ.add(4); show(sorted(jarQQ.setQQ))", "http.cookiejar.setQQ"),
    ("a container in a library's class", "import configparser\nconfigparser.RawConfigParser.BOOLEAN_STATES['yepQQ'] = True", "show(configparser.RawConfigParser.BOOLEAN_STATES['yepQQ'])", "configparser.RawConfigParser.BOOLEAN_STATES"),
    ("how pickle copies a class", "import copyreg, copy\nclass CQQ:\n    def __init__(self, n): self.n = n\ncopyreg.pickle(CQQ, lambda c: (CQQ, (c.n * 2,)))\n", "show(copy.copy(CQQ(2)).n)", "copyreg.dispatch_table"),
    ("a hook of the interpreter", "import sys\nlogQQ = []\nsys.excepthook = lambda *a: logQQ.append('hooked')", "sys.excepthook(1, 2, 3); show(logQQ)", "sys.excepthook"),
    ("the display hook", "import sys\nseenQQ = []\nsys.displayhook = seenQQ.append", "sys.displayhook(3); show(seenQQ)", "sys.displayhook"),
    ("the hook of unraisable exceptions", "import sys\nlostQQ = []\nsys.unraisablehook = lambda a: lostQQ.append(1)\nclass CQQ:\n    def __del__(self): 1 / 0", "CQQ(); show(lostQQ)", "sys.unraisablehook"),
    ("the hook of threads", "import threading\ncaughtQQ = []\nthreading.excepthook = lambda a: caughtQQ.append(2)", "threading.excepthook(None); show(caughtQQ)", "threading.excepthook"),
    ("the hook of breakpoints", "import sys\nsys.breakpointhook = lambda *a: 'stopped'", "show(breakpoint())", "sys.breakpointhook"),
    ("the limit of tracebacks", "import sys\nsys.tracebacklimit = 3", "show(sys.tracebacklimit)", "sys.tracebacklimit"),
    ("the recursion limit", "import sys\nsys.setrecursionlimit(1357)", "show(sys.getrecursionlimit())", "recursion limit"),
    ("the switch interval", "import sys\nsys.setswitchinterval(0.25)", "show(sys.getswitchinterval())", "switch interval"),
    ("origins of coroutines", "import sys\nsys.set_coroutine_origin_tracking_depth(3)", "show(sys.get_coroutine_origin_tracking_depth())", "origins of coroutines"),
    ("hooks of asynchronous generators", "import sys\ndef firstQQ(g): pass\nsys.set_asyncgen_hooks(firstiter=firstQQ)", "show(sys.get_asyncgen_hooks()[0] is firstQQ)", "hooks of asynchronous generators"),
    ("digits of int", "import sys\nsys.set_int_max_str_digits(5555)", "show(sys.get_int_max_str_digits())", "digits of int"),
    ("bytecode is not written", "import sys\nsys.dont_write_bytecode = not sys.dont_write_bytecode\nbeforeQQ = sys.dont_write_bytecode", "show(sys.dont_write_bytecode == beforeQQ)", "sys.dont_write_bytecode"),
    ("a finder of modules", "import sys, importlib.util, importlib.abc\nclass FinderQQ(importlib.abc.MetaPathFinder, importlib.abc.Loader):\n    def find_spec(self, name, path, target=None):\n        return importlib.util.spec_from_loader(name, self) if name == 'imaginaryQQ' else None\n    def exec_module(self, module): module.n = 7\nsys.meta_path.insert(0, FinderQQ())",
     "import importlib; show(importlib.import_module('imaginaryQQ').n)\nimport sys; sys.modules.pop('imaginaryQQ', None)", "sys.meta_path"),
    ("a module made by hand", "import types, sys\nmadeQQ = types.ModuleType('handmadeQQ', 'its doc')\nmadeQQ.n = [1]\nexec('def up(): n.append(2); return n', madeQQ.__dict__)\nmadeQQ.later = lambda: 5\nsys.modules['handmadeQQ'] = madeQQ",
     "import handmadeQQ as m; show(m is madeQQ, m.n, m.later(), m.__doc__); show(m.up())", "modules made by hand"),
    ("a module made by hand without a name", "import types, sys\nsys.modules['unnamedQQ'] = types.SimpleNamespace(n=4)", "import unnamedQQ as m; show(m.n)", "modules made by hand"),
    ("a module that stays out of sys.modules", "import types\nvQQ = types.ModuleType('apartQQ')\nvQQ.n = 3\nvQQ.me = vQQ", "show(vQQ.n, vQQ.me is vQQ, type(vQQ).__name__)"),
    ("an added builtin", "import builtins\nbuiltins.shoutQQ = lambda t: t.upper()\nbuiltins.limitQQ = 3", "show(shoutQQ('a'), limitQQ)", "builtins.shoutQQ"),
    ("a replaced builtin", "import builtins\nstockQQ = builtins.ascii\nbuiltins.ascii = lambda v: 'A' + stockQQ(v)", "show(ascii('x'))", "builtins.ascii"),
    ("a builtin that came and went", "import builtins\nbuiltins.spareQQ = 1\ndel builtins.spareQQ", "import builtins; show(hasattr(builtins, 'spareQQ'))"),
    ("a callback of the garbage collector", "import gc\nrunsQQ = []\ndef onQQ(phase, info): runsQQ.append(phase)\ngc.callbacks.append(onQQ)", "import gc; gc.collect(); show(runsQQ[-2:]); runsQQ.clear()", "gc.callbacks"),
    ("the garbage collector", "import gc\ngc.set_threshold(999, 9, 9)", "import gc; show(gc.get_threshold())", "garbage collector"),
    ("a function at the end", "import atexit\nendsQQ = []\natexit.register(endsQQ.append, 'end')", "import atexit; atexit._run_exitfuncs(); show(endsQQ); endsQQ.clear()", "atexit.register"),
    ("an error handler of codecs", "import codecs\ncodecs.register_error('markQQ', lambda e: ('!', e.end))", "show('a\\xe9'.encode('ascii', 'markQQ'))", "codecs.register_error"),
    ("a codec", "import codecs\ndef findQQ(name): return codecs.CodecInfo(lambda t, e='': (b'coded', len(t)), lambda b, e='': ('plain', len(b)), name=name) if name == 'codecQQ'.lower() else None\ncodecs.register(findQQ)", "show('a'.encode('codecQQ'))", "codecs.register"),
    ("an audit hook", "import sys\nauditedQQ = []\ndef hookQQ(event, args):\n    if event == 'kind.QQ': auditedQQ.append(args)\nsys.addaudithook(hookQQ)", "import sys; sys.audit('kind.QQ', 5); show(auditedQQ)", "sys.addaudithook"),
    ("a type of files", "import mimetypes\nmimetypes.add_type('a/kindQQ', '.kindQQ')", "show(mimetypes.guess_type('f.kindQQ'))", "mimetypes.add_type"),
    ("a signal handler", "import signal\ngotQQ = []\nsignal.signal(signal.SIGTERM, lambda n, f: gotQQ.append(n))", "import signal\nif callable(signal.getsignal(signal.SIGTERM)): signal.raise_signal(signal.SIGTERM)\nshow([0 for _ in range(99)][:0], gotQQ)", "signal handlers"),
    ("an ignored signal", "import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)", "import signal; show(signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN)", "signal handlers"),
    ("the locale", "import locale\nlocale.setlocale(locale.LC_NUMERIC, 'C.UTF-8')\nlocale.setlocale(locale.LC_TIME, 'C.UTF-8')", "import locale; show(locale.setlocale(locale.LC_TIME), locale.localeconv()['decimal_point'])", "locale"),
    ("the decimal context", "import decimal\ndecimal.getcontext().prec = 7\ndecimal.getcontext().traps[decimal.Inexact] = False", "import decimal; show(decimal.Decimal(1) / 3)", "decimal context"),
    ("the random state", "import random\nrandom.seed(11)\nrandom.gauss(0, 1)", "import random; show(random.random(), random.gauss(0, 1), random.sample(range(99), 3))", "random state"),
    ("environment variables", "import os\nos.environ['KIND_QQ'] = 'on'\nos.environ['GONE_QQ'] = ''\ndel os.environ['GONE_QQ']", "import os; show(os.environ['KIND_QQ'], os.getenv('GONE_QQ'))", "os.environ"),
    ("sys.path", "import sys\nsys.path.insert(0, '/kindQQ')\nsys.path.append('/endQQ')", "import sys; show([p for p in sys.path if p[-3:] == 'QQ'[-3:]])", "sys.path"),
    ("sys.argv", "import sys\nsys.argv = ['prog', '-v']", "import sys; show(sys.argv)", "sys.argv"),
    ("limits and dialects of csv", "import csv\ncsv.field_size_limit(777)\ncsv.register_dialect('kindQQ', delimiter='|')", "import csv; show(csv.field_size_limit(), csv.get_dialect('kindQQ').delimiter)", "csv settings"),
    ("filters of warnings", "import warnings\nwarnings.filterwarnings('error', message='kindQQ')", "import warnings\ntry: warnings.warn('kindQQ')\nexcept UserWarning as e: show('raised', e)", "warnings filters"),
    ("a function that shows warnings", "import warnings\nshownQQ = []\nwarnings.showwarning = lambda m, *a, **k: shownQQ.append(str(m))\nwarnings.filterwarnings('always', message='shown')", "import warnings; warnings.warn('shown'); show(shownQQ)", "warnings.showwarning"),
    ("the format of warnings", "import warnings\nwarnings.formatwarning = lambda *a, **k: 'formattedQQ'", "import warnings; show(warnings.formatwarning(1))", "warnings.formatwarning"),
    ("a logger", "import logging, io\nstreamQQ = io.StringIO()\nlogQQ = logging.getLogger('kindQQ')\nlogQQ.propagate = False\nlogQQ.setLevel(10)\nhandlerQQ = logging.StreamHandler(streamQQ)\nhandlerQQ.setFormatter(logging.Formatter('%(name)s %(message)s'))\nlogQQ.addHandler(handlerQQ)\nlogQQ.addFilter(lambda r: 'no' not in r.msg)",
     "logQQ.info('yes'); logQQ.info('no'); show(streamQQ.getvalue(), logging.getLogger('kindQQ') is logQQ)", "logging configuration"),
    ("a class of loggers", "import logging\nclass LoggerQQ(logging.Logger):\n    def shout(self): return self.name.upper()\nlogging.setLoggerClass(LoggerQQ)\nmineQQ = logging.getLogger('ownQQ')\nlogging.setLoggerClass(logging.Logger)", "show(mineQQ.shout(), logging.getLogger('ownQQ').shout())", "logging configuration"),
    ("a factory of log records", "import logging\nstockRecordQQ = logging.getLogRecordFactory()\ndef recordQQ(*a, **k):\n    r = stockRecordQQ(*a, **k)\n    r.kindQQ = 'k'\n    return r\nlogging.setLogRecordFactory(recordQQ)", "import logging; show(logging.makeLogRecord({}).kindQQ, logging.getLogRecordFactory() is recordQQ)", "logging._logRecordFactory"),
    ("the name of a level", "import logging\nlogging.addLevelName(33, 'KINDQQ')", "import logging; show(logging.getLevelName(33), logging.getLevelName('KINDQQ'))", "logging configuration"),
    ("the socket timeout", "import socket\nsocket.setdefaulttimeout(4.5)", "import socket; show(socket.getdefaulttimeout())", "socket timeout"),
    ("a class registered with an abstract one", "import collections.abc, numbers\n@collections.abc.Mapping.register\nclass RowQQ: pass\n@numbers.Number.register\nclass NumQQ: pass", "import collections.abc, numbers; show(isinstance(RowQQ(), collections.abc.Mapping), isinstance(NumQQ(), numbers.Number))", "registered classes"),
    ("a value of a context variable", "import contextvars\nvarQQ = contextvars.ContextVar('v')\ntokenQQ = None\nvarQQ.set([1])\ncopyQQ = contextvars.copy_context()\nvarQQ.set([2])", "show(varQQ.get(), copyQQ.run(varQQ.get), copyQQ[varQQ])"),
    ("the profile of threads", "import threading\ndef profQQ(*a): pass\nthreading.setprofile(profQQ)", "import threading; show(threading._profile_hook is profQQ)", "threading._profile_hook"),
    ("a thread pool's calls", "import concurrent.futures\npoolQQ = concurrent.futures.ThreadPoolExecutor(2)\nvQQ = [poolQQ.submit(pow, 2, n) for n in range(3)]\nconcurrent.futures.wait(vQQ)", "show([f.result() for f in vQQ], poolQQ.submit(pow, 3, 3).result())"),
    ("a failed future", "import concurrent.futures\nvQQ = concurrent.futures.ThreadPoolExecutor(1).submit(int, 'x')\nconcurrent.futures.wait([vQQ])", "show(repr(vQQ.exception()), vQQ.done(), vQQ.cancelled())"),
    ("an asyncio queue", "import asyncio\nvQQ = asyncio.Queue(5)\nvQQ.put_nowait(1)", "vQQ.put_nowait(2); show(vQQ.get_nowait(), vQQ.qsize())"),
    ("an asyncio lock and event", "import asyncio\nvQQ = asyncio.Lock(), asyncio.Event(), asyncio.Semaphore(2)\nvQQ[1].set()", "show(vQQ[0].locked(), vQQ[1].is_set(), vQQ[2].locked())"),
    ("a task that waits", "import asyncio\nasync def sleepQQ(): await asyncio.sleep(999)\nasync def startQQ():\n    global vQQ\n    vQQ = asyncio.ensure_future(sleepQQ())\n    vQQ.set_name('taskQQ')\nawait startQQ()", "show(vQQ.get_name(), vQQ.done())", "task taskQQ"),
    ("a task without a name", "import asyncio\nloggedQQ = []\nasync def slowQQ():\n    await asyncio.sleep(999)\n    loggedQQ.append('done')\nasync def beginQQ(): asyncio.ensure_future(slowQQ()).set_name('backQQ')\nawait beginQQ()", "import asyncio; show(any(t.get_name() == 'backQQ' for t in asyncio.all_tasks(asyncio.get_event_loop_policy().get_event_loop())))", "task backQQ"),
    ("defaults of a library's function", "import textwrap\ntextwrap.indent.__defaults__ = (lambda line: False,)", "import textwrap; show(textwrap.indent('a', '>'))", "textwrap.indent.__defaults__"),
    ("code of a library's function", "import bisect, posixpath\ndef newQQ(p): return 'base'\nposixpath.basename.__code__ = newQQ.__code__", "import posixpath; show(posixpath.basename('/a/b'))", "posixpath.basename.__code__"),
    ("an attribute of a library's function", "import shlex\nshlex.quote.countQQ = 4", "import shlex; show(shlex.quote.countQQ)", "shlex.quote.countQQ"),
    ("an implementation for a library's dispatcher", "import functools, importlib.resources, pkgutil\nclass ImporterQQ: pass\npkgutil.iter_importer_modules.register(ImporterQQ, lambda i, prefix='': iter(['found']))", "import pkgutil; show(list(pkgutil.iter_importer_modules(ImporterQQ())))", "pkgutil.iter_importer_modules.registry"),
    ("an option of doctest", "import doctest\nflagQQ = doctest.register_optionflag('KIND_QQ')", "import doctest; show(doctest.OPTIONFLAGS_BY_NAME['KIND_QQ'] == flagQQ)", "doctest.OPTIONFLAGS_BY_NAME"),
    ("a character set of mail", "import email.charset\nemail.charset.add_charset('kindQQ', email.charset.QP)\nemail.charset.add_codec('kindQQ', 'latin-1')", "import email.charset; show(email.charset.CHARSETS['kindQQ'][0], email.charset.CODEC_MAP['kindQQ'])", "email.charset.CHARSETS", "email.charset.CODEC_MAP"),
    ("the domain of translations", "import gettext\ngettext.textdomain('kindQQ')", "import gettext; show(gettext.textdomain())", "gettext.textdomain"),
    ("an attribute of a logger", "import logging\nlogging.getLogger('attrQQ').extra = 5\nlogging.getLogger().extraQQ = 6", "import logging; show(logging.getLogger('attrQQ').extra, logging.getLogger().extraQQ)", "logging configuration"),
    ("the maker of loggers", "import logging\nclass MadeQQ(logging.Logger): pass\nlogging.Logger.manager.setLoggerClass(MadeQQ)", "import logging; show(logging.Logger.manager.loggerClass is MadeQQ); logging.Logger.manager.loggerClass = None", "logging configuration"),
    ("debugging of the event loop", "import asyncio\nasync def setQQ(): asyncio.get_running_loop().set_debug(True)\nawait setQQ()", "import asyncio; show(asyncio.get_event_loop_policy().get_event_loop().get_debug())", "event loop"),
    ("a handler of the event loop", "import asyncio\ndef handleQQ(loop, context): pass\nasync def setQQ(): asyncio.get_running_loop().set_exception_handler(handleQQ)\nawait setQQ()", "import asyncio; show(asyncio.get_event_loop_policy().get_event_loop().get_exception_handler() is handleQQ)", "event loop"),
    ("an attribute of the event loop", "import asyncio\nasync def setQQ():\n    asyncio.get_running_loop().ownQQ = [4]\n    asyncio.get_running_loop().slow_callback_duration = 9\nawait setQQ()", "import asyncio; loop = asyncio.get_event_loop_policy().get_event_loop(); loop.ownQQ.append(1); show(loop.ownQQ, loop.slow_callback_duration)", "event loop"),
    ("the doc of the session", "__doc__ = 'docQQ'", "show(namespace['__doc__'] if 'namespace' in globals() else __doc__)"),
    ("the name of the session's package", "__package__ = 'packageQQ'", "show(__package__)"),
    ("an attribute of a library's member", "import http, socket\nhttp.HTTPStatus.OK.noteQQ = 'x'\nhttp.HTTPStatus.GONE.phrase = 'Weg'\nsocket.AF_INET.noteQQ = [1]", "import http, socket; socket.AF_INET.noteQQ.append(2); show(http.HTTPStatus.OK.noteQQ, http.HTTPStatus.GONE.phrase, socket.AF_INET.noteQQ)", "http.HTTPStatus.OK.noteQQ", "http.HTTPStatus.GONE.phrase"),
    ("entries of a dict in a dict", "import calendar\ncalendar.treeQQ = {'a': {'b': [1]}}\nimport opcode\nopcode._cache_format['LOAD_GLOBAL']['QQ'] = 1", "import opcode, calendar; show(opcode._cache_format['LOAD_GLOBAL']['QQ'], calendar.treeQQ)", "opcode._cache_format.LOAD_GLOBAL", "calendar.treeQQ"),
    ("entries of an ordered dict", "import collections, statistics\nstatistics.orderQQ = collections.OrderedDict(b=1)\nstatistics.orderQQ['a'] = 2\nstatistics.dequeQQ = collections.deque([1], 2)", "import statistics; statistics.dequeQQ.append(3); show(list(statistics.orderQQ), statistics.dequeQQ)", "statistics.orderQQ"),
    ("a private number of a library", "import re\nre._MAXCACHE = 77", "import re; show(re._MAXCACHE)", "re._MAXCACHE"),
    ("other decimal contexts", "import decimal\ndecimal.BasicContext.prec = 11\ndecimal.ExtendedContext.rounding = decimal.ROUND_UP", "import decimal; show(decimal.BasicContext.prec, decimal.ExtendedContext.rounding)", "decimal context"),
    ("used time of the processor", "import time\nvQQ = time.process_time(), time.process_time_ns()\nwhile time.process_time() < vQQ[0] + .5: pass\nvQQ = time.process_time(), time.process_time_ns()", "import time; show(0 <= time.process_time() - vQQ[0] < 99, 0 <= time.process_time_ns() - vQQ[1] < 99e9)", "clocks"),
    ("a clock", "import time\nvQQ = time.perf_counter(), time.monotonic(), time.time()", "import time; show(*[0 <= now() - t < 999 for now, t in zip((time.perf_counter, time.monotonic, time.time), vQQ)])"),
    ("an executor's first call", "import concurrent.futures\nbegunQQ = []\nvQQ = concurrent.futures.ThreadPoolExecutor(2, 'poolQQ', begunQQ.append, (1,))", "import threading; show(vQQ.submit(lambda: threading.current_thread().name[:4]).result(), begunQQ[:1])"),
    ("traces of crashes", "import faulthandler\nfaulthandler.enable()", "import faulthandler; show(faulthandler.is_enabled())", "faulthandler"),
    ("a tool that watches", "import sys\nif hasattr(sys, 'monitoring'): sys.monitoring.use_tool_id(3, 'toolQQ')", "import sys; show(hasattr(sys, 'monitoring') and sys.monitoring.get_tool(3))", "sys.monitoring"),
    ("garbage", "import gc\ngc.garbage.append('QQ')", "import gc; show('QQ' in gc.garbage)", "gc.garbage"),
    ("another name for a module", "import sys, json\nsys.modules['otherQQ'] = json", "import sys, json; show(sys.modules['otherQQ'] is json)", "modules made by hand"),
    ("a standard input", "import sys, io\nsys.stdin = io.StringIO('lineQQ')", "import sys; show(sys.stdin.getvalue())", "sys.stdin"),
    ("the last exception", "import sys\nsys.last_value = ValueError('QQ')", "import sys; show(repr(sys.last_value))", "sys.last_value"),
    ("the version of Python", "import sys\nvQQ = sys.version_info", "show(vQQ[0])"),
    ("a deeply nested list", "vQQ = []\nfor _ in range(5000): vQQ = [vQQ]", "show(len(vQQ))"),
    ("a class from new_class", "import types\nvQQ = types.new_class('NewQQ', (dict,), {}, lambda ns: ns.update(n=3))", "show(vQQ.n, vQQ(a=1))"),
]


def make_modules():
    for name, make, use, *names in MODULES:
        kind("modules", name, make, use, *names)


# --- names that are no UTF-8, or no text --------------------------------------------

NAMES = [
    ("of a variable, with a lone surrogate", "globals()['\\ud800QQ'] = [1]", "show(globals()['\\ud800QQ'])"),
    ("of a variable, that is empty", "globals()[''] = 'QQ'", "show(globals()[''])"),
    ("of a variable, with a NUL", "globals()['QQ\\0'] = 1", "show(globals()['QQ\\0'])"),
    ("of a variable, that is a number", "globals()['QQ', 5] = 1", "show(globals()['QQ', 5])"),
    ("of a variable, of a class of strings", "class SQQ(str): pass\nglobals()[SQQ('textQQ')] = 1", "show([type(n) is SQQ for n in globals() if str(n) == 'textQQ'])"),
    ("in a module", "import math\nsetattr(math, '\\ud800QQ', [1])", "import math; show(getattr(math, '\\ud800QQ', None))"),
    ("in a class of a module", "import json\nsetattr(json.JSONDecoder, '\\ud800QQ', 1)", "import json; show(getattr(json.JSONDecoder, '\\ud800QQ', None))"),
    ("in the builtins", "import builtins\nsetattr(builtins, '\\ud800QQ', 1)", "import builtins; show(getattr(builtins, '\\ud800QQ', None))"),
    ("in a class", "class CQQ: pass\nsetattr(CQQ, '\\ud800', 1)", "show(getattr(CQQ, '\\ud800'))"),
    ("in an instance", "class CQQ: pass\nvQQ = CQQ()\nvars(vQQ).update({'\\ud800': 1, 5: 2})", "show(vars(vQQ) == {'\\ud800': 1, 5: 2})"),
    ("in a function", "def fQQ(): pass\nsetattr(fQQ, '\\ud800', 1)", "show(getattr(fQQ, '\\ud800'))"),
    ("of a class", "class CQQ: pass\nCQQ.__qualname__ = '\\ud800'\nvQQ = CQQ()", "show(ascii(CQQ.__qualname__), type(vQQ) is CQQ)"),
    ("of a class's module", "class CQQ: pass\nCQQ.__module__ = '\\ud800'\nvQQ = CQQ()", "show(ascii(CQQ.__module__), type(vQQ) is CQQ)"),
    ("of a function", "def fQQ(): return 1\nfQQ.__name__ = fQQ.__qualname__ = '\\ud800'", "show(ascii(fQQ.__name__), fQQ())"),
    ("of a module", "import sys, types\nvQQ = sys.modules['\\ud800QQ'] = types.ModuleType('\\ud800QQ')\nvQQ.x = 1", "import sys; show(vQQ.x, sys.modules.get('\\ud800QQ') is vQQ)"),
    ("of a key", "vQQ = {'\\ud800': {'\\udfff': 1}}", "show(ascii(vQQ))"),
    ("of a keyword", "vQQ = __import__('functools').partial(dict, **{'\\ud800': 1})", "show(ascii(vQQ()))"),
    ("of a member of an enum", "import enum\nEQQ = enum.Enum('EQQ', {'\\ud800': 1})", "show([ascii(m.name) for m in EQQ])"),
    ("of a thread", "import threading\nvQQ = threading.Thread(name='\\ud800')", "show(ascii(vQQ.name))"),
    ("of a logger", "import logging\nlogging.getLogger('\\ud800QQ').setLevel(10)", "import logging; show(logging.getLogger('\\ud800QQ').level)"),
    ("of a variable of the environment", "import os\nos.environ['QQ\\udcff'] = '\\udcfe'", "import os; show(ascii(os.environ.get('QQ\\udcff')))"),
]


def make_names():
    for name, make, use, *names in NAMES:
        kind("names", name, make, use, *names)


# --- what only a tier with processes can make -------------------------------------

PIPES = [f"descriptor {n}" for n in range(3, 40)]
PROCESSES = [
    ("the file mask", "import os\nos.umask(0o27)", "import os; m = os.umask(0); os.umask(m); show(oct(m))", "file mask"),
    ("a thread that runs", "import threading\nstopQQ = threading.Event()\nvQQ = threading.Thread(target=stopQQ.wait, daemon=True, name='runsQQ')\nvQQ.start()", "show(vQQ.is_alive())"),
    ("a thread without a variable", "import threading\nwaitQQ = threading.Event()\nthreading.Thread(target=waitQQ.wait, daemon=True, name='aloneQQ').start()", "import threading; show('aloneQQ' in [t.name for t in threading.enumerate()])"),
    ("a thread that has ended", "import threading\nvQQ = threading.Thread(target=int, name='endedQQ')\nvQQ.start()\nvQQ.join()", "show(vQQ.is_alive(), vQQ.name)"),
    ("a held lock", "import threading\nvQQ = threading.Lock()\nvQQ.acquire()", "show(vQQ.locked())"),
    ("an open file", "vQQ = open('/tmp/openQQ', 'w+')\nvQQ.write('a')\nvQQ.seek(0)", "show(vQQ.read())"),
    ("a file", "import pathlib\npathlib.Path('/tmp/fileQQ').write_text('a')", "import pathlib; show(pathlib.Path('/tmp/fileQQ').exists())"),
    ("a file in the working folder", "open('workQQ.txt', 'w').close()", "import os; show(os.path.exists('workQQ.txt'))"),
    ("a temporary folder", "import tempfile\ntempfile.tempdir = None\nvQQ = tempfile.TemporaryDirectory(prefix='folderQQ')", "import os; show(os.path.isdir(vQQ.name))"),
    ("a child process", "import subprocess\nimport sys\nvQQ = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)", "show(vQQ.poll())", *PIPES),
    ("the result of a process", "import subprocess\nvQQ = subprocess.CompletedProcess(['a'], 3, b'out')", "show(vQQ.returncode, vQQ.stdout, vQQ.args)"),
    ("a socket", "import socket\nvQQ = socket.socketpair()", "vQQ[0].send(b'a'); show(vQQ[1].recv(1))"),
    ("a pipe", "import os\nvQQ = os.pipe()", "import os; os.write(vQQ[1], b'a'); show(os.read(vQQ[0], 1))", *PIPES),
    ("a mapping of memory", "import mmap\nvQQ = mmap.mmap(-1, 4096)", "show(vQQ[:1])"),
    ("a database", "import sqlite3\nvQQ = sqlite3.connect(':memory:')", "show(vQQ.execute('select 1').fetchall())"),
    ("an adapter of a database", "import sqlite3\nclass CQQ: pass\nsqlite3.register_adapter(CQQ, lambda c: 'adapted')", "import sqlite3; show(sqlite3.connect(':memory:').execute('select ?', (CQQ(),)).fetchall())", "_sqlite3.adapters"),
    ("blocked signals", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])", "import signal; show(signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, []))", "blocked signals"),
    ("a timer", "import signal\nsignal.setitimer(signal.ITIMER_VIRTUAL, 9999)", "import signal; show(signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0)", "signal.ITIMER_VIRTUAL"),
    ("a limit of the process", "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (99, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))", "import resource; show(resource.getrlimit(resource.RLIMIT_NOFILE)[0])", "limits of resources"),
    ("the time zone", "import os, time\nos.environ['TZ'] = 'XYZ-5'\ntime.tzset()", "import time; show(time.tzname[0], time.timezone)", "time zone"),
    ("the stack of threads", "import threading\nthreading.stack_size(1 << 19)", "import threading; show(threading.stack_size())", "stack of threads"),
    ("traces of memory", "import tracemalloc\ntracemalloc.start()", "import tracemalloc; show(tracemalloc.is_tracing())", "tracemalloc"),
    ("how processes start", "import multiprocessing\nmultiprocessing.set_start_method('spawn', True)", "import multiprocessing; show(multiprocessing.get_start_method())", "multiprocessing.set_start_method"),
    ("a C structure", "import ctypes\nclass CQQ(ctypes.Structure):\n    _fields_ = [('x', ctypes.c_int), ('y', ctypes.c_double)]\nvQQ = CQQ(1, 2.5)", "show(vQQ.x, vQQ.y, ctypes.sizeof(CQQ))"),
    ("C data", "import ctypes\nvQQ = (ctypes.c_int * 3)(1, 2, 3)", "show(list(vQQ))"),
    # late, because the word f_locals makes every traceback lose something that is named
    ("an exception whose frames are read", "def failQQ(a):\n    local = a * 2\n    return 1 / 0\ntry: failQQ(4)\nexcept ZeroDivisionError as e: vQQ = e\nreadQQ = lambda trace: trace.tb_frame.f_locals",
     "show(readQQ(vQQ.__traceback__.tb_next).get('local'))"),
]

# what needs packages, and a tier that has them
PACKAGES = [
    ("an array of numpy", "import numpy\nvQQ = numpy.arange(6).reshape(2, 3)", "show(vQQ.sum(), vQQ.T.tolist())"),
    ("random numbers of numpy", "import numpy\nnumpy.random.seed(5)", "import numpy; show(numpy.random.randint(1000))", "numpy random state"),
    ("a table of pandas", "import pandas\nvQQ = pandas.DataFrame({'a': [1, 2]})", "show(vQQ.a.sum())"),
    ("options of pandas", "import pandas\npandas.options.display.max_rows = 7", "import pandas; show(pandas.get_option('display.max_rows'))", "pandas options"),
]


def make_processes():
    for name, make, use, *names in PROCESSES:
        kind("processes", name, make, use, *names)
    for name, make, use, *names in PACKAGES:
        kind("packages", name, make, use, *names)


make_values()
make_dataclasses()
make_enums()
make_subclasses()
make_features()
make_functions()
make_modules()
make_names()
make_processes()
print("\x1e".join("\x1f".join(parts) for parts in kinds))
