# Kinds of state. Each makes something, the session moves, and each uses what it made. A
# session that has moved prints what one that stayed does.
# === members of an enum keep their attributes
import enum


class Planet(enum.Enum):
    EARTH = (5.97e24, 6.37e6)
    MARS = (6.42e23, 3.39e6)

    def __init__(self, mass, radius):
        print("init", self._name_)
        self.mass, self.radius = mass, radius
        self.notes = [mass]

    @property
    def density(self):
        return self.mass / self.radius


Planet.EARTH.seen = Planet.MARS
# --- the next snippet ---
print(Planet.EARTH.mass, Planet.MARS.density, Planet.EARTH.notes, Planet.EARTH.seen is Planet.MARS)
print(Planet((6.42e23, 3.39e6)), list(Planet), Planet.EARTH.value, "__init__" in vars(Planet))
# === an enum with its own __new__
import enum


class Coin(bytes, enum.Enum):
    def __new__(cls, value, label):
        self = bytes.__new__(cls, [value])
        self._value_, self.label = value, label
        return self

    PENNY = 1, "one cent"
    DIME = 10, "ten cents"
    TEN = DIME


class Base(enum.Enum):
    def __new__(cls, *args):
        self = object.__new__(cls)
        self._value_ = len(cls.__members__) + 1
        return self

    def _generate_next_value_(name, start, count, last):
        return name.lower()


class Derived(Base):
    A = ()
    B = ()


class Size(int, enum.Enum):
    S = 1
    L = "12", 16


# --- the next snippet ---
print(Coin(10).label, Coin.PENNY, bytes(Coin.DIME), Coin.TEN is Coin.DIME, list(Coin.__members__))
print(list(Derived), Derived.B.value, Derived(1), Size.L + 1, Size.L.value, Size.S is Size(1))


class Later(Base):
    X = enum.auto()


print(Later.X.value)
# === flags
import enum


class Permission(enum.Flag):
    R = 4
    W = 2
    RW = 6
    NONE = 0


class Kept(enum.IntFlag, boundary=enum.KEEP):
    A = 1
    B = 4


allowed = Permission.R | Permission.W
kept = Kept(9)
# --- the next snippet ---
print(allowed is Permission.RW, ~Permission.R, list(Permission), Permission.NONE, allowed.name, kept, Kept(17) | Kept.B)
try:
    print(Permission(8))
except ValueError as error:
    print(error)
# === enums of texts with hooks
import enum


class Level(str, enum.Enum):
    LOW = "low"
    HIGH = "high"
    extra = enum.nonmember(5)

    @classmethod
    def _missing_(cls, value):
        return cls.LOW

    def __str__(self):
        return f"<{self.value}>"


Level.added = {"x": Level.HIGH}
# --- the next snippet ---
print(str(Level.HIGH), Level("nothing"), Level.HIGH == "high", Level.extra, Level.added["x"].upper(), len(Level))
# === reassigned attributes of a dataclass
import dataclasses
import typing


@dataclasses.dataclass
class Config:
    limit: int = 5
    tags: list = dataclasses.field(default_factory=list)
    shared: typing.ClassVar[dict] = {}
    total: typing.ClassVar[int] = 0

    def show(self):
        return f"{self.limit} {self.total}"


Config.shared["k"] = 1
Config.total = 7
Config.limit = 9
Config.__repr__ = lambda self: "replaced"
config = Config()
# --- the next snippet ---
print(config, config.show(), Config.limit, Config().limit, Config.total, Config.shared, [f.name for f in dataclasses.fields(Config)])
# === dataclasses with total_ordering
import dataclasses
import functools


@functools.total_ordering
@dataclasses.dataclass
class Version:
    major: int
    minor: int = 0

    def __lt__(self, other):
        return (self.major, self.minor) < (other.major, other.minor)


versions = [Version(2), Version(1, 5)]
# --- the next snippet ---
print(sorted(versions), versions[0] >= versions[1], versions[0] <= versions[1], Version(1) > Version(0))
# === dataclasses with slots and fields that are not in __init__
import dataclasses


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int
    b: int = dataclasses.field(init=False, default=3)
    c: list = dataclasses.field(init=False, default_factory=list)
    d: str = "d"


slotted = Slotted(1)
slotted.c.append(1)
# --- the next snippet ---
print(slotted, Slotted(2), Slotted(2) == Slotted(2), hasattr(slotted, "__dict__"), dataclasses.replace(slotted, a=5))
# === dataclasses with keyword-only fields and InitVar
import dataclasses


@dataclasses.dataclass(frozen=True)
class Options:
    path: str
    _: dataclasses.KW_ONLY
    depth: int = 1
    scale: dataclasses.InitVar[int] = 2
    result: int = dataclasses.field(init=False, default=0, metadata={"unit": "m"})

    def __post_init__(self, scale):
        object.__setattr__(self, "result", self.depth * scale)


@dataclasses.dataclass(order=True)
class More(Options if False else object):
    key: int
    rest: list = dataclasses.field(default_factory=list, compare=False, repr=False)


options = Options("p", depth=3)
only = dataclasses.KW_ONLY
# --- the next snippet ---
print(options, Options("q", depth=2, scale=5), only is dataclasses.KW_ONLY, dataclasses.fields(Options)[-1].metadata["unit"])
print(More(1, [2]) < More(2), More(1))
try:
    Options("q", 2)
except TypeError:
    print("keyword only")
# === a registry of subclasses
zed = None


class Plugin:
    registry = {}

    def __init_subclass__(cls, /, key=None, **rest):
        super().__init_subclass__(**rest)
        print("registers", key)
        Plugin.registry[key] = cls


class First(Plugin, key="first"):
    pass


class Second(Plugin, key="second"):
    pass


zed = [Second, First]
del First, Second
# --- the next snippet ---
print([c.__name__ for c in Plugin.__subclasses__()], list(Plugin.registry), Plugin.registry["first"] is zed[1])


class Third(Plugin, key="third"):
    pass


print([c.__name__ for c in Plugin.__subclasses__()])
# === the message of an exception
class Wrapped(Exception):
    def __init__(self, message):
        super().__init__(f"wrapped: {message}")


class Coded(ValueError):
    def __init__(self, code, *, detail):
        super().__init__(f"{code}")
        self.code, self.detail = code, detail


class Bare(Exception):
    def __init__(self, a, b):
        self.a, self.b = a, b


mistakes = [Wrapped("x"), Coded(7, detail="d"), Bare(1, 2), KeyError("k"), ValueError()]
mistakes[0].add_note("a note")
mistakes[3].extra = mistakes[1]
# --- the next snippet ---
print(mistakes, [str(m) for m in mistakes], [m.args for m in mistakes], mistakes[0].__notes__)
print(mistakes[1].code, mistakes[1].detail, mistakes[2].b, mistakes[3].extra is mistakes[1])
# === the fields of the exceptions of Python
import json

failures = []
for attempt in (
    lambda: open("/no/such/file"), lambda: b"\xff".decode(), lambda: json.loads("{"), lambda: [].x,
    lambda: no_such_name, lambda: exec("a b"), lambda: __import__("no_such_module"), lambda: next(iter(())),
):
    try:
        attempt()
    except Exception as caught:
        failures.append(caught.with_traceback(None))
failures += [SystemExit(3), StopIteration(5), OSError(13, "denied", "f", None, "g"), UnicodeEncodeError("a", "\xe9", 0, 1, "r")]
# --- the next snippet ---
for failure in failures:
    fields = ("errno", "strerror", "filename", "filename2", "reason", "start", "object", "msg", "pos", "name", "obj", "lineno", "text", "value", "code")
    print(type(failure).__name__, failure, failure.args, [getattr(failure, f) for f in fields if hasattr(failure, f)])
# === an exception's cause, context and traceback
import traceback


def inner():
    return {}["missing"]


def outer():
    try:
        inner()
    except KeyError as error:
        raise ValueError("outer") from error


try:
    outer()
except ValueError as caught:
    chained = caught
try:
    try:
        inner()
    finally:
        1 / 0
except ZeroDivisionError as caught:
    contextual = caught
try:
    raise ExceptionGroup("several", [chained, TypeError("t")])
except ExceptionGroup as caught:
    group = caught
hushed = RuntimeError("quiet")
hushed.__context__ = chained
hushed.__suppress_context__ = True
# --- the next snippet ---
for mistake in (chained, contextual, group, hushed):
    lines = "".join(traceback.format_exception(mistake)).splitlines()
    print("\n".join(line for line in lines if line.strip(" |~^")))  # marks differ between versions
print(repr(chained.__cause__), chained.__suppress_context__, repr(contextual.__context__), group.exceptions[0] is chained)
print([(f.name, f.lineno) for f in traceback.extract_tb(chained.__traceback__)], group.split(TypeError)[0].exceptions)
try:
    raise chained
except ValueError as again:
    print(len(traceback.extract_tb(again.__traceback__)))
# === a traceback marks its columns
import sys
import traceback

try:
    print([1, 2][0] + {"a": 1}["b"])
except KeyError:
    marked = sys.exc_info()[2]
# --- the next snippet ---
print("".join(traceback.format_tb(marked)), marked.tb_lineno, marked.tb_frame.f_code.co_name)
# === ABC registrations
import abc
import collections.abc


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


@Shape.register
class Blob:
    pass


Shape.register(bytearray)


@collections.abc.Sequence.register
class Row:
    pass


# --- the next snippet ---
print(issubclass(Blob, Shape), isinstance(bytearray(), Shape), isinstance(3, Shape), isinstance(Row(), collections.abc.Sequence))
try:
    Shape()
except TypeError:
    print("abstract")
# === containers with their own methods
import collections


class Loud(dict):
    def __init__(self, name):
        self.name, self.writes = name, 0

    def __setitem__(self, key, value):
        self.writes += 1
        super().__setitem__(key.upper(), value)


class Journal(list):
    count = 0

    def append(self, item):
        Journal.count += 1
        super().append(("entry", item))

    extend = None


class Tally(collections.Counter):
    def __init__(self, label, *args):
        self.label = label
        super().__init__(*args)


class Groups(collections.defaultdict):
    def __init__(self):
        super().__init__(list)


class Ordered(collections.OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, ("set", value))


class Unique(set):
    def __init__(self, items, limit):
        super().__init__(items)
        self.limit = limit


class Recent(collections.deque):
    def __init__(self, size):
        super().__init__(maxlen=size)


loud, journal, tally, grouped, ordered, unique, recent = (
    Loud("n"), Journal(), Tally("t", "abca"), Groups(), Ordered(), Unique([3, 1], 5), Recent(2))
loud["a"] = 1
loud["me"] = loud
journal.append(1)
grouped["x"].append(1)
ordered["b"] = 1
ordered["a"] = 2
recent.extend([1, 2, 3])
# --- the next snippet ---
print(loud["A"], loud.name, loud.writes, loud["ME"] is loud, journal, Journal.count, tally, tally.label)
grouped["y"].append(2)
print(dict(grouped), list(ordered.items()), sorted(unique), unique.limit, recent, recent.maxlen, type(loud).__name__)
# === values with their own __new__
class Celsius(float):
    def __new__(cls, degrees, unit):
        self = super().__new__(cls, degrees)
        self.unit = unit
        return self


class Pair(tuple):
    def __new__(cls, x, y):
        return super().__new__(cls, (x, y))


class Single:
    made = None

    def __new__(cls, value):
        if cls.made is None:
            cls.made = super().__new__(cls)
            cls.made.value = value
        return cls.made


class Names(frozenset):
    def __new__(cls, first, second):
        return super().__new__(cls, (first, second))


warm, two, single, names = Celsius(20.5, "C"), Pair(1, 2), Single(3), Names("a", "b")
two.more = [two]
# --- the next snippet ---
print(warm + 1, warm.unit, two, two.more[0] is two, single.value, Single(4) is single, sorted(names), type(names).__name__)
# === decimal, random, environment, arguments
import csv
import decimal
import os
import random
import sys
import warnings

decimal.getcontext().prec = 5
decimal.getcontext().rounding = decimal.ROUND_DOWN
random.seed(42)
random.random()
os.environ["RLM_TEST_MODE"] = "on"
sys.argv = ["program", "--flag"]
sys.path.insert(0, "/first")
sys.path.append("/last")
csv.field_size_limit(999)
csv.register_dialect("pipes", delimiter="|", quoting=csv.QUOTE_ALL)
warnings.filterwarnings("error", message="careful.*", category=UserWarning)
sys.setrecursionlimit(1234)
sys.set_int_max_str_digits(5000)
die = random.randint
# --- the next snippet ---
import io

print(decimal.Decimal(2) / 3, decimal.getcontext().rounding, random.random(), random.randint(1, 1000), die(1, 1000))
print(os.environ["RLM_TEST_MODE"], os.getenv("RLM_TEST_MODE"), sys.argv, sys.path[0], "/last" in sys.path, csv.field_size_limit())
pipes = io.StringIO()
csv.writer(pipes, "pipes").writerow([1, 2])
print(pipes.getvalue(), sys.getrecursionlimit(), sys.get_int_max_str_digits(), die.__self__ is random.random.__self__)
try:
    warnings.warn("careful now")
except UserWarning as warning:
    print("raised", warning)
# === the configuration of logging
import io
import logging

stream = io.StringIO()
handler = logging.StreamHandler(stream)
handler.setFormatter(logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
log = logging.getLogger("app.part")
log.addHandler(handler)
log.setLevel(logging.INFO)
logging.getLogger("app").propagate = False
logging.addLevelName(25, "NOTICE")
logging.basicConfig(level=logging.ERROR, stream=stream, format="root %(message)s")
# --- the next snippet ---
log.info("one")
log.debug("two")
log.log(25, "three")
logging.error("four")
logging.warning("five")
print(stream.getvalue(), log.handlers[0] is handler, logging.getLogger("app").propagate, logging.getLogger().level)
logging.getLogger().handlers.clear()
# === what functools.cache has
import functools

paid = []


@functools.cache
def ask(question, depth=1):
    paid.append(question)
    return [question, depth]


@functools.lru_cache(maxsize=3, typed=True)
def bounded(x, *, y=0):
    paid.append(x)
    return x + y


class Asks:
    @functools.lru_cache(maxsize=None)
    def method(self, x):
        paid.append(x)
        return x


def make_cached():
    bonus = 10

    @functools.lru_cache
    def closed(x):
        paid.append(x)
        return x + bonus

    return closed


asks, closed = Asks(), make_cached()
answer_one = ask("q")
ask("r", depth=2), ask(("t", 1)), asks.method(5), closed(1)
for i in (1, 2, 3, 4, 2):
    bounded(i, y=1)
# --- the next snippet ---
print(ask("q") is answer_one, ask("r", depth=2), ask(("t", 1)), asks.method(5), closed(1), closed(2), paid, len(set(paid)))
bounded(4, y=1), bounded(3, y=1), bounded(2, y=1)
print(paid, bounded.cache_info().currsize, bounded.cache_parameters(), ask.cache_info().currsize)
bounded(9), bounded(2, y=1), bounded(4, y=1)
print(paid)
ask.cache_clear()
print(ask("q"), paid[-1])
# === matches, structures, views
import re
import struct
import types

match = re.search(r"(?P<word>\w+)-(\d+)", "see item-42 here")
matches = list(re.finditer(r"(?<=a)b?", "abaab"))
whole = re.fullmatch(r"a.*?", "abc")
layout = struct.Struct("<iH")
table = {"a": 1}
keys, values, items = table.keys(), table.values(), table.items()
proxy = types.MappingProxyType(table)
# --- the next snippet ---
print(match.groupdict(), match.span(2), match.pos, match.string[match.end():], match, [m.span() for m in matches], whole.group())
table["b"] = 2
print(list(keys), list(values), ("b", 2) in items, layout.pack(1, 2), layout.size, dict(proxy))
# === types of typing
import typing

UserId = typing.NewType("UserId", int)
T = typing.TypeVar("T", bound=int)
P = typing.ParamSpec("P")
Alias = typing.Callable[P, T] if False else dict[str, list[int]]
either = int | None
# --- the next snippet ---
print(UserId(5), UserId.__name__, UserId.__supertype__, UserId, T.__bound__, P, Alias, either)
# === weak references
import weakref


class Thing:
    pass


thing = Thing()
thing.n = 5
ref, weak_proxy = weakref.ref(thing), weakref.proxy(thing)
by_value, by_key, weak_set = weakref.WeakValueDictionary(), weakref.WeakKeyDictionary(), weakref.WeakSet()
by_value["k"] = thing
by_key[thing] = "v"
weak_set.add(thing)
# --- the next snippet ---
print(ref() is thing, weak_proxy.n, by_value["k"] is thing, by_key[thing], thing in weak_set)
del thing
import gc

gc.collect()
print(ref(), len(by_value), len(by_key), len(weak_set))
# === hash objects that have taken nothing
import hashlib

fresh = hashlib.sha256()
# --- the next snippet ---
fresh.update(b"x")
print(fresh.hexdigest(), fresh.name)
# === functions that the standard library makes
import contextlib
import functools


@contextlib.contextmanager
def tagged(name):
    yield f"<{name}>"


@functools.singledispatch
def describe(x):
    return "any"


@describe.register
def _describe_int(x: int):
    return "int"


key = functools.cmp_to_key(lambda a, b: b - a)
# --- the next snippet ---
with tagged("x") as opened:
    print(opened)
print(describe(1), describe("s"), sorted([1, 3, 2], key=key))
# === parsers of arguments, within one version of Python
import argparse

parser = argparse.ArgumentParser(prog="p")
parser.add_argument("--count", type=int, default=1)
# --- the next snippet ---
print(parser.parse_args(["--count", "3"]))
# === objects of threads and loops
import queue
import threading

event, condition, waiting, gate = threading.Event(), threading.Condition(), queue.Queue(), threading.Semaphore(2)
event.set()
waiting.put(1)
# --- the next snippet ---
waiting.put(2)
with condition, gate:
    print(event.is_set(), waiting.get(), waiting.get(), waiting.empty())
# === streams of the session
import sys

out = sys.stdout
report = {"to": sys.stderr}
# --- the next snippet ---
print(out is sys.stdout, report["to"] is sys.stderr, file=out)
# === sub-calls that failed, which stay no answers
failed = SubCallError("Error: lost")
typed = type(failed).__subclasses__()[0]("Error: lost, too")
# --- the next snippet ---
for use in (lambda: FINAL([failed]), lambda: FINAL({"a": typed}), lambda: bool(typed)):
    try:
        print(use())
    except TypeError as e:
        print(e)
print(bool(failed), failed.error, type(typed).__name__, isinstance(typed, SubCallError))
