"""A whole namespace as bytes, so that a session can move to another tier.

Values go by pickle, in one stream with one memo, so that what is shared stays
shared. Functions and classes that snippets defined go by value (see
definitions.py), modules by name, contexts as references to what the other tier
has as well. What cannot move leaves a LeftBehind in its place.

The stream: an index of parts, names and ends, then one pickle of a head, one of each
variable, each setting (see environment.py) and each change in a module (see patches.py),
and one of the order of subclasses. It comes and goes in pieces: a long value is never copied
as a whole.
"""

import builtins
import copyreg
import functools
import importlib
import io
import linecache
import pickle
import sys
import types
from time import monotonic

import _rlm

import binaries
import caches
import contexts
import coverage
import definitions
import environment
import exceptions
import failures
import hostcall
import instances
import leftbehind
import library
import memos
import pages
import parts
import patches
import queries
import sessionloop
import wire

# Under this name the functions of this module are found by pickle, while a state
# is written or read and at no other time.
_NAME = "_rlm_state"

main = None  # the __main__ module, its globals, and what is reserved there; set by run
reserved = {}


# --- what the streams name ----------------------------------------------------


def _module(name):
    return importlib.import_module(name)


def _original(module, path, inside):
    return patches.original(module, path, inside)


def _builtin(name):
    return getattr(builtins, name)


def _host_function(name):
    return hostcall.known[name]


def _reserved(name):
    return reserved[name]


def _sub_call_error(text, typed):
    return (failures.TypedSubCallError if typed else failures.SubCallError)(text)


def _prediction(fields):
    return queries.Prediction(fields)


def _session_loop():
    return sessionloop.session_loop()


def _coverage(*fields):
    return coverage.Coverage(*fields)


def _text(number, start, end):
    return contexts.again(number, start, end)


def _short(number):
    return contexts.short_again(number)


def _part(number, index):
    return contexts.open_text(wire.decode(wire.text(f"ti{number}"))).parts[index]


def _picture(data):
    return pages.Picture(data)


def _binary(number):
    return binaries.again(number)


def _lazy(number, *args):
    return _LAZY[number](*args)


_LAZY = parts.Parts, parts.Chunks


_KINDS = {
    types.GeneratorType: "a generator runs where it was started",
    types.CoroutineType: "a coroutine runs where it was started",
    types.AsyncGeneratorType: "a generator runs where it was started",
    types.FrameType: "a frame belongs to its interpreter",
    io.TextIOWrapper: "an open file stays where it was opened",
    io.BufferedReader: "an open file stays where it was opened",
    io.BufferedWriter: "an open file stays where it was opened",
    io.BufferedRandom: "an open file stays where it was opened",
    io.FileIO: "an open file stays where it was opened",
}

# Types whose own reduction is known to work: asking it would only cost time.
_EASY = frozenset((complex, range, slice, type(None), type(...), type(NotImplemented), types.BuiltinFunctionType))


class _Pickler(pickle.Pickler):
    def __init__(self, file):
        super().__init__(file, 5)
        self.losses = definitions.losses = leftbehind.Losses()
        self.classes = []  # of snippets, in the order in which they were written
        self.ways = {}  # class -> how its instances are taken apart
        self.originals = {}  # what the session has replaced in modules
        self.left = {}  # id of a value that is left behind -> (kind, reason)
        self.loop = sessionloop.current()

    def reducer_override(self, obj):
        if self.originals and id(obj) in self.originals:
            return _original, self.originals[id(obj)]
        kind = type(obj)
        if kind in _EASY:
            return NotImplemented
        if issubclass(kind, type):
            return self._definition(obj, definitions.reduce_class)
        if kind is types.FunctionType:
            return self._definition(obj, definitions.reduce_function)
        if kind is types.ModuleType:
            return self._of_module(obj)
        if obj is self.loop:
            return _session_loop, ()
        if kind is hostcall.HostFunction:
            return _host_function, (obj.__name__,)
        if kind in (failures.SubCallError, failures.TypedSubCallError):
            return _sub_call_error, (str.__str__(obj), kind is failures.TypedSubCallError)
        if kind is queries.Prediction:
            return _prediction, (dict(obj),)
        if kind is coverage.Coverage:
            return _coverage, obj.fields()
        if kind in contexts.LONG:
            return _text, (obj._id, obj._a, obj._b)
        if kind is contexts.ShortText:
            return _short, (obj._id,)
        if kind is pages.Part:
            return _part, (obj._info["id"], obj._number)
        if kind is pages.Picture:
            return _picture, (bytes(obj),)
        if kind in _LAZY:
            return _lazy, (_LAZY.index(kind), *obj.again())
        if kind is binaries.Bytes or kind is binaries.LongBytes:
            return _binary, (obj._id,)
        if kind is contexts.Directory:
            return _reserved, (f"context_{obj._id}",)
        if kind in _KINDS:
            name = library.stream_name(obj)
            return (library.make_stream, (name,)) if name else self._leave(obj, kind.__name__, _KINDS[kind])
        return self._instance(obj, kind)

    def name_again(self, name, value):
        """Names a variable that is left behind like one before it."""
        found = self.left.get(id(value))
        if found and not self.losses.has(name):
            self.losses.note(*found)

    def _definition(self, obj, reduce):
        try:
            found = reduce(obj)
            if reduce is definitions.reduce_class and obj.__module__ == "__main__":
                self.classes.append(obj)
            return found
        except _ENDINGS as error:
            return self._leave(obj, type(obj).__name__, _explain_definition(obj, error))

    def _of_module(self, obj):
        if obj is not main and getattr(obj, "__spec__", None) is None:
            return library.reduce_module(obj)
        if sys.modules.get(obj.__name__) is not obj:
            return self._leave(obj, "module", f"{obj.__name__} is another one than sys.modules has")
        return _module, (obj.__name__,)

    def _instance(self, obj, kind):
        way = self.ways.get(kind)
        if way is None:
            try:
                way = self.ways[kind] = _Way(kind)
            except Exception as error:
                return self._leave(obj, type.__getattribute__(kind, "__name__"), leftbehind.explain(error))
        reduce = way.reduce
        if kind.__module__ == "run" and vars(builtins).get(obj.name) is obj:  # exit and quit
            return _builtin, (obj.name,)
        if way.constants:
            name = way.constants.get(id(obj))
            if name is not None:
                return library.make_constant, (kind.__module__, name)
        try:
            found = reduce(obj) if reduce else obj.__reduce_ex__(5)
        except _ENDINGS as error:
            return self._leave(obj, kind.__name__, leftbehind.explain(error))
        if isinstance(found, tuple) and 2 <= len(found) <= 6:
            return found if way.is_safe else way.guard(found, kind)
        if isinstance(found, str) and definitions.importable(obj, found):
            return found
        return self._leave(obj, kind.__name__, "it does not say how to copy it")

    def lose(self, value, reason):
        """Returns the stand-in for a variable whose value cannot be written."""
        self.losses.note(type(value).__name__, reason)
        return leftbehind.LeftBehind(type(value).__name__, reason)

    def _leave(self, obj, kind, reason):
        self.losses.note(kind, reason)
        if len(self.left) < leftbehind.MOST:
            self.left[id(obj)] = kind, reason
        return leftbehind.left_behind, (kind, reason[:300])


# What a method of a snippet may raise. An interrupt, as all else, ends the whole.
_ENDINGS = Exception, SystemExit, GeneratorExit


def _explain_definition(obj, error):
    try:
        return f"{getattr(obj, '__qualname__', obj)!s}: {error}"
    except _ENDINGS:  # its metaclass answers for it
        return leftbehind.explain(error)


def _of_argparse(found, kind):
    """argparse compares one of its texts by identity, and later versions of Python have more
    attributes."""
    if kind.__name__ == "Namespace":
        return found
    mark = sys.modules["argparse"].SUPPRESS
    reference = _Reference(library.make_constant, ("argparse", "SUPPRESS"))
    if len(found) < 3 or type(found[2]) is not dict:
        return _guarded(found, kind)
    function, args, state, *rest = found
    state = {name: reference if value is mark else value for name, value in state.items()}
    return _attempt, (library.make_of_version, sys.version_info[:2], function, *args), state, *rest


# Modules whose instances any tier can read.
_SAFE = frozenset(("builtins", "datetime", "decimal", "fractions", "collections", "array", "uuid", "itertools"))


class _Way:
    """How the instances of a class are taken apart."""

    __slots__ = ("reduce", "constants", "is_safe", "guard")

    def __init__(self, kind):
        self.reduce = _reducer(kind)
        self.constants = library.constants(kind)
        self.guard = _of_argparse if kind.__module__ == "argparse" else _guarded
        is_known = self.reduce is not None or kind.__module__ in _SAFE or _is_plain(kind)
        self.is_safe = is_known and self.guard is _guarded


def _reducer(kind):
    """Returns the function that takes instances apart, None for their own way."""
    registered = copyreg.dispatch_table
    reduce = definitions.SPECIAL.get(kind) or type(registered) is dict and registered.get(kind) or None
    if reduce is None and issubclass(kind, BaseException):
        return exceptions.reduce_exception
    if reduce is None and not definitions.importable(kind):
        return instances.reducer(kind)
    if reduce is None and hasattr(kind, "__getattr__") and _is_stock(kind):
        return instances.reduce_bare  # pickle would ask the instance for methods before it has a state
    return reduce or instances.of_subclass(kind)


def _is_stock(kind):
    """Reports whether object's own methods copy an instance."""
    return (
        kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
        and not hasattr(kind, "__setstate__")
    )


def _is_plain(kind):
    """Reports whether an instance is made and copied by object's own methods."""
    return kind.__new__ is object.__new__ and _is_stock(kind)


def _guarded(found, kind):
    """Returns a reduction in which a failing call costs its value alone, not all that the
    value is a part of."""
    function, args, *rest = found
    if function not in _ALLOCATES or getattr(kind.__new__, "__code__", None):
        function, args = _attempt, (function, *args)
    if rest and rest[0] is not None and not any(rest[1:]) and hasattr(kind, "__setstate__"):
        rest = rest[0], None, None, _attempt_state
    return function, args, *rest


_ALLOCATES = (copyreg.__newobj__, copyreg.__newobj_ex__)


def _attempt(function, *args):
    try:
        return function(*args)
    except MemoryError:
        raise
    except _ENDINGS as error:
        kind = next((arg for arg in (function, *args) if isinstance(arg, type)), function)
        kind, reason = getattr(kind, "__name__", "value"), leftbehind.explain(error)
        definitions.lost(kind, reason)
        return leftbehind.Hollow(kind, reason)


def _attempt_state(value, state):
    try:
        value.__setstate__(state)
    except MemoryError:
        raise
    except _ENDINGS as error:
        definitions.lost(type(value).__name__, leftbehind.explain(error))


class _Finding:
    """The common part of both unpicklers."""

    def find_class(self, module, name):
        if module == _NAME:
            return _NAMED[name]
        if module == "__main__":
            return definitions.attribute(main, name)
        name = _OLDER.get((module, name), name)
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError) as error:
            outer, _, inner = module.rpartition(".")
            if outer and inner[:1] == "_":  # some versions of Python keep a package's parts there
                return self.find_class(outer, name)
            return leftbehind.absent(f"{module}.{name}", str(error))


# New names of classes -> those that all versions of CPython know.
_OLDER = {("enum", "EnumType"): "EnumMeta", ("re", "PatternError"): "error"}


class _Unpickler(_Finding, pickle.Unpickler):
    pass


class _Recovering(_Finding, pickle._Unpickler):
    """Slower, but its memo can be set."""


_NAMED = {f.__name__: f for f in (
    leftbehind.left_behind, _module, _original, _builtin, _host_function, _reserved, _sub_call_error, _prediction, _coverage,
    _session_loop, _text, _short, _part, _picture, _binary, _lazy, _attempt, _attempt_state)}
_NAMED.update((f.__name__, f) for f in definitions.NAMED + exceptions.NAMED + instances.NAMED + library.NAMED + caches.NAMED)


class _findable:
    """Registers the objects that streams name where pickle looks for them."""

    def __enter__(self):
        module = types.ModuleType(_NAME)
        module.__dict__.update(_NAMED)
        for f in _NAMED.values():
            f.__module__ = _NAME
        sys.modules[_NAME] = module

    def __exit__(self, *exc):
        sys.modules.pop(_NAME, None)
        definitions.forget()
        definitions.losses = None


def send(variables, odd):
    """Gives the host the variables, and what has names that are no str: (name, value) of each."""
    pieces, left = dump(variables, odd)
    wire.tell("l", {"moved": len(variables) + len(odd), "left": left})
    wire.text(f"p{sum(map(len, pieces))}")
    for piece in _joined(pieces):
        wire.call(piece)


def receive():
    """Takes variables from the host into the namespace."""
    moved, left = load(_Incoming())
    wire.tell("l", {"moved": moved, "left": left})


_PIECE = 1 << 20  # bytes of the longest piece


class _Pieces:
    """A file for a pickler, which keeps what is written as it is."""

    def __init__(self):
        self.pieces, self.size = [], 0

    def write(self, data):
        self.pieces.append(data if type(data) is bytes else bytes(data))
        self.size += len(data)


def _joined(pieces):
    """Yields requests with the pieces: short ones together, long ones in parts."""
    parts, size = [b"p"], 0
    for piece in pieces:
        if size + len(piece) > _PIECE:
            yield b"".join(parts)
            view = memoryview(piece)
            while len(view) > _PIECE:
                yield b"p" + view[:_PIECE]
                view = view[_PIECE:]
            parts, size = [b"p", view], len(view)
        else:
            parts.append(piece)
            size += len(piece)
    yield b"".join(parts)


class _Incoming(io.RawIOBase):
    """The stream, of which the host gives a part at a time."""

    def __init__(self):
        self.at = 0

    def readable(self):
        return True

    seekable = readable

    def seek(self, offset, whence=io.SEEK_SET):
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end is not known")
        self.at = offset + (self.at if whence == io.SEEK_CUR else 0)
        return self.at

    def readinto(self, into):
        data = wire.call(b"g%d,%d" % (self.at, min(len(into), _PIECE)))
        into[: len(data)] = data
        self.at += len(data)
        return len(data)


# An interrupt may cut short what copies a variable, and nothing else of this module. _hold must be
# no Python function: at the begin of one, a second interrupt could arrive.
_hold = getattr(_rlm, "hold", None) or functools.partial(_rlm.call, b"n.")
_permit = getattr(_rlm, "permit", None)  # None: the host permits interrupts when a variable begins
_told = 0.0


def _begin(name, losses):
    """Begins with a variable, whose time the host measures from here. A host that does not
    depend on it is told only if some time has passed, because most variables take none."""
    global _told
    losses.name = name
    if _permit is None:
        return
    now = monotonic()
    if now - _told > 0.05:
        _told = now
        _tell()


class _Over(TimeoutError):
    """No time is left for further variables. It is not about one of them."""

    def __init__(self):
        super().__init__("all variables together take too long to copy")


def _tell():
    if wire.text("n"):
        raise _Over


def _copy(work, *args):
    """Calls what copies a variable, and lets interrupts cut it short."""
    try:
        (_permit or _tell)()
        return work(*args)
    finally:
        _hold()


def _overdue():
    """Why the variable that was interrupted is left behind; raises if no time is left for
    the others."""
    global _told
    _told = 0.0
    reason = wire.text("n!")
    if not reason:
        raise _Over from None
    return reason


def dump(variables, odd=()):
    """The variables, and the changes in modules, as ([bytes], [left])."""
    global _told
    _told = 0.0
    lost, changes = {}, patches.Changes()
    with _findable():
        while True:
            file = _Pieces()
            pickler = _Pickler(file)
            pickler.originals, definitions.changed = changes.originals, changes.places
            _name_staying(pickler.losses, changes.unknown)
            _dump_head(pickler)
            ends = [("", "", file.size)]
            if not _dump_all(pickler, file, _parts(variables, odd, changes.found, pickler), lost, ends):
                index = wire.encode(ends).encode("utf-8", "surrogatepass")
                return [len(index).to_bytes(4, "little"), index, *file.pieces], pickler.losses.report()


def _parts(variables, odd, changes, pickler):
    """Yields (part, name, value) of all that moves."""
    for name, value in variables:
        yield VARIABLE, name, _shown(value)
    for name, value in environment.taken():
        yield SETTING, name, value
    for name, change in changes:
        yield CHANGE, name, change
    for number, item in enumerate(odd, 1):
        yield ODD, f"name {number} that is no str, but of type {type(item[0]).__name__}", item
    order = [(cls, kinds) for cls in pickler.classes if len(kinds := type.__subclasses__(cls)) > 1]
    if order:
        yield ORDER, "the order of subclasses", order


VARIABLE, SETTING, CHANGE, ODD, ORDER = "variable", "setting", "change", "odd name", "order"


def _dump_all(pickler, file, parts, lost, ends):
    """Writes all parts. A value that fails midway spoils the memo, so all is
    written again with a stand-in for it."""
    for part, name, value in parts:
        _begin(name, pickler.losses)
        if (part, name) in lost:
            value = pickler.lose(value, lost[part, name])
        try:
            _copy(pickler.dump, value)
        except (MemoryError, _Over):
            raise
        except KeyboardInterrupt:
            _hold()
            lost[part, name] = _overdue()
            return True
        except BaseException as error:
            lost[part, name] = leftbehind.explain(error)
            return True
        pickler.name_again(name, value)
        ends.append((part, name, file.size))
    return False


def _name_staying(losses, unknown):
    try:
        for losses.name, kind, reason in environment.staying():
            losses.note(kind, reason)
    except Exception as error:  # a snippet has put something else in place of what is asked
        losses.name = "threads, tasks and files"
        losses.note("list", f"it cannot be made: {error}")
    for losses.name, reason in unknown:
        losses.note("module", reason)


def _shown(value):
    """The value, or a reference if it is another name for a context."""
    if issubclass(type(value), str):
        for name, known in reserved.items():
            if known is value:
                return _Reference(_reserved, (name,))
    return value


class _Reference:
    __slots__ = ("function", "args")

    def __init__(self, function, args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


def _namespace():
    return main.__dict__


def _builtins():
    return vars(builtins)


_NAMED.update(_namespace=_namespace, _builtins=_builtins)


def _dump_head(pickler):
    """Writes the head, and what stands for the names of the session and for those of Python
    wherever a value has their dicts."""
    shared = [(_Reference(_namespace, ()), main.__dict__), (_Reference(_builtins, ()), vars(builtins))]
    pickler.dump((_head(), [reference for reference, _ in shared]))
    memo = pickler.memo.copy()
    for reference, names in shared:
        memo[id(names)] = memo.pop(id(reference))[0], names
    pickler.memo = memo


def _head():
    sources = {name: definitions.source(entry) for name, entry in definitions.snippets()}
    return {"python": sys.version_info[:3], "sources": sources}


def load(stream):
    """Reads variables from a raw stream into the namespace, and settings into modules: (how many variables
    came along, [left])."""
    global _told
    _told = 0.0
    file, moved = io.BufferedReader(stream, 1 << 18), 0
    index = file.read(int.from_bytes(file.read(4), "little"))
    start, ends = 4 + len(index), wire.decode(index.decode("utf-8", "surrogatepass"))
    with _findable():
        losses = definitions.losses = leftbehind.Losses()
        reader = _reader(file)
        for name, text in reader.load()[0]["sources"].items():
            linecache.cache.setdefault(name, (len(text), None, text.splitlines(True), name))
        for part, name, end in ends[1:]:
            _begin(name, losses)
            try:
                moved += _copy(lambda: _put(part, name, reader.load()))
            except (MemoryError, _Over):
                raise
            except BaseException as error:
                _hold()
                reason = _overdue() if type(error) is KeyboardInterrupt else leftbehind.explain(error)
                losses.note("value" if part == VARIABLE else part, reason)
                stand_in = leftbehind.LeftBehind("value", reason[:300])
                if part == VARIABLE:
                    main.__dict__[name] = stand_in
                file.seek(start)
                reader = _reader(file, memos.restore(reader, file.read(end), stand_in))
    return moved, losses.report()


def _put(part, name, value):
    """Puts a part where it belongs, and reports whether it is a variable that moved."""
    is_left = type(value) in (leftbehind.LeftBehind, leftbehind.Hollow)
    if type(value) is leftbehind.Hollow and not definitions.losses.has(name):
        definitions.lost(*value._parts())  # it is the value of another variable, too
    if part == VARIABLE:
        main.__dict__[name] = value
        return not is_left
    if is_left:
        return False
    if part == ODD:
        odd, value = value
        main.__dict__[odd] = value
        return True
    if part == SETTING:
        environment.give(name, value)
    elif part == CHANGE:
        patches.give(value)
    else:
        _order_subclasses(value)
    return False


def _order_subclasses(order):
    """Gives classes their subclasses in the order of then: a class goes to the end when
    its bases are set."""
    for cls, kinds in order:
        if isinstance(cls, type) and type.__subclasses__(cls) != kinds:
            for kind in kinds:
                type.__dict__["__bases__"].__set__(kind, kind.__bases__)


def _reader(file, memo=None):
    reader = _Unpickler(file) if memo is None else _Recovering(file)
    if memo is not None:
        reader.memo = memo
    return reader


def _lost(kind, reason):
    """Notes a value that the function of another module loses."""
    definitions.losses.note(kind, reason)


definitions.lost = _lost
definitions.stand_in = leftbehind.Hollow
