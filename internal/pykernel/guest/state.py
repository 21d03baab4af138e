"""A whole namespace as bytes, so that a session can move to another tier.

Values go by pickle, in one stream with one memo, so that what is shared stays
shared. Functions and classes that snippets defined go by value (see
definitions.py), modules by name, contexts as references to what the other tier
has as well. What cannot move leaves a LeftBehind in its place.

The stream: an index of names and ends, then one pickle of a head and one of each
variable.
"""

import copyreg
import importlib
import io
import linecache
import pickle
import sys
import types
from time import monotonic

import contexts
import definitions
import hostcall
import queries
import wire

# Under this name the functions of this module are found by pickle, while a state
# is written or read and at no other time.
_NAME = "_rlm_state"
_MAX_LEFT = 200

main = None  # the __main__ module, its globals, and what is reserved there; set by run
reserved = {}


class LeftBehind:
    """Stands for a value that could not move. Any use of it says so."""

    __slots__ = ("_kind", "_reason")

    def __init__(self, kind, reason):
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_reason", reason)

    def __repr__(self):
        return f"<{self._kind} left behind: {self._reason}>"

    def __reduce__(self):
        return _left_behind, (self._kind, self._reason)

    def _refuse(self, *args, **kwargs):
        kind, reason = object.__getattribute__(self, "_kind"), object.__getattribute__(self, "_reason")
        raise RuntimeError(f"this {kind} was left behind when the session moved: {reason}. Make it again.")

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._refuse()


for _operation in (
    "call iter next len getitem setitem delitem contains bool str int float index enter exit aiter anext await aenter "
    "aexit eq ne lt le gt ge hash add radd sub rsub mul rmul truediv floordiv mod pow and or xor neg pos abs invert "
    "format setattr delattr"
).split():
    setattr(LeftBehind, f"__{_operation}__", LeftBehind._refuse)


def _left_behind(kind, reason):
    return LeftBehind(kind, reason)


# --- what the streams name ----------------------------------------------------


def _module(name):
    return importlib.import_module(name)


def _host_function(name):
    return main.__dict__[name]


def _reserved(name):
    return reserved[name]


def _sub_call_error(text):
    return queries.SubCallError(text)


def _prediction(fields):
    return queries.Prediction(fields)


def _text(number, start, end):
    return contexts.again(number, start, end)


_KINDS = {
    types.GeneratorType: "a generator runs where it was started",
    types.CoroutineType: "a coroutine runs where it was started",
    types.AsyncGeneratorType: "a generator runs where it was started",
    types.FrameType: "a frame belongs to its interpreter",
    types.TracebackType: "a traceback belongs to its interpreter",
    io.TextIOWrapper: "an open file stays where it was opened",
    io.BufferedReader: "an open file stays where it was opened",
    io.BufferedWriter: "an open file stays where it was opened",
    io.BufferedRandom: "an open file stays where it was opened",
    io.FileIO: "an open file stays where it was opened",
    memoryview: "a memoryview belongs to its interpreter",
}

# Types whose own reduction is known to work: asking it would only cost time.
_EASY = frozenset((complex, range, slice, type(None), type(...), type(NotImplemented), types.BuiltinFunctionType))


class _Pickler(pickle.Pickler):
    def __init__(self, file):
        super().__init__(file, 5)
        self.left = []
        self.name = ""  # the variable that is being written

    def reducer_override(self, obj):
        kind = type(obj)
        if kind in _EASY:
            return NotImplemented
        if issubclass(kind, type):
            return self._definition(obj, definitions.reduce_class)
        if kind is types.FunctionType:
            return self._definition(obj, definitions.reduce_function)
        if kind is types.ModuleType:
            return self._of_module(obj)
        if kind is hostcall.HostFunction:
            return _host_function, (obj.__name__,)
        if kind is queries.SubCallError:
            return _sub_call_error, (str.__str__(obj),)
        if kind is queries.Prediction:
            return _prediction, (dict(obj),)
        if kind is contexts.LazyText:
            return _text, (obj._id, obj._a, obj._b)
        if kind is contexts.Directory:
            return _reserved, (f"context_{obj._id}",)
        if kind in _KINDS:
            return self._leave(kind.__name__, _KINDS[kind])
        return self._instance(obj, kind)

    def _definition(self, obj, reduce):
        try:
            return reduce(obj)
        except Exception as error:
            return self._leave(type(obj).__name__, f"{getattr(obj, '__qualname__', obj)!s}: {error}")

    def _of_module(self, obj):
        if sys.modules.get(obj.__name__) is not obj:
            return self._leave("module", f"{obj.__name__} was made by hand")
        return _module, (obj.__name__,)

    def _instance(self, obj, kind):
        reduce = definitions.SPECIAL.get(kind) or copyreg.dispatch_table.get(kind)
        try:
            found = reduce(obj) if reduce else obj.__reduce_ex__(5)
        except Exception as error:
            return self._leave(kind.__name__, str(error) or type(error).__name__)
        if isinstance(found, tuple) and 2 <= len(found) <= 6:
            return found
        if isinstance(found, str) and definitions.importable(obj, found):
            return found
        return self._leave(kind.__name__, "it does not say how to copy it")

    def lose(self, value, reason):
        """Returns the stand-in for a variable whose value cannot be written."""
        self._leave(type(value).__name__, reason)
        return LeftBehind(type(value).__name__, reason)

    def _leave(self, kind, reason):
        reason = reason[:300]
        if len(self.left) < _MAX_LEFT:
            self.left.append({"name": self.name, "type": kind, "reason": reason})
        return _left_behind, (kind, reason)


class _Finding:
    """The common part of both unpicklers."""

    def find_class(self, module, name):
        if module == _NAME:
            return _NAMED[name]
        if module == "__main__":
            return definitions.attribute(main, name)
        if module == "enum" and name == "EnumType":
            name = "EnumMeta"  # as CPython before 3.11 calls it
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError) as error:
            return _Missing(self, f"{module}.{name}", str(error))


class _Unpickler(_Finding, pickle.Unpickler):
    pass


class _Recovering(_Finding, pickle._Unpickler):
    """Slower, but its memo can be set."""


class _Missing:
    """Replaces a class or function that this tier lacks."""

    def __init__(self, unpickler, name, reason):
        self.unpickler, self.name, self.reason = unpickler, name, reason

    def __call__(self, *args, **kwargs):
        left = self.unpickler.left
        if len(left) < _MAX_LEFT:
            left.append({"name": self.unpickler.name, "type": self.name, "reason": self.reason})
        return _Hollow(self.name, self.reason)


class _Hollow(LeftBehind):
    """A LeftBehind that accepts all operations of a stream on a new object."""

    __slots__ = ()

    def __setstate__(self, state):
        pass

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def __setitem__(self, key, value):
        pass


_NAMED = {f.__name__: f for f in (_left_behind, _module, _host_function, _reserved, _text)}
_NAMED.update((f.__name__, f) for f in definitions.NAMED)


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
        definitions._compiled.clear()


def send(names):
    """Gives the host the variables with those names."""
    data, left = dump(names)
    wire.send("l", wire.encode({"moved": len(names), "left": left}))
    wire.call(b"p" + data)


def receive():
    """Takes variables from the host into the namespace."""
    moved, left = load(wire.call(b"g"))
    wire.send("l", wire.encode({"moved": moved, "left": left}))


_told = 0.0


def _begin(name, worker):
    """Begins with a variable, whose time the host measures from here. It is told
    only if some has passed, because most variables take none."""
    global _told
    worker.name = name
    now = monotonic()
    if now - _told > 0.05:
        _told = now
        wire.text("n")


def _overdue():
    """Why the variable that was interrupted is left behind; raises if it was not its
    own time that was over."""
    reason = wire.text("n!")
    if not reason:
        raise
    return reason


def dump(names):
    """The variables with those names as (bytes, [left])."""
    lost = {}
    with _findable():
        while True:
            file = io.BytesIO()
            pickler = _Pickler(file)
            pickler.dump(_head())
            ends = [("", file.tell())]
            if not _dump_all(pickler, file, names, lost, ends):
                index = wire.encode(ends).encode()
                return len(index).to_bytes(4, "little") + index + file.getvalue(), pickler.left


def _dump_all(pickler, file, names, lost, ends):
    """Writes the variables. A value that fails midway spoils the memo, so all is
    written again with a stand-in for it."""
    for name in names:
        _begin(name, pickler)
        value = main.__dict__[name]
        if name in lost:
            value = pickler.lose(value, lost[name])
        try:
            pickler.dump(_shown(value))
        except MemoryError:
            raise
        except KeyboardInterrupt:
            lost[name] = _overdue()
            return True
        except Exception as error:
            lost[name] = str(error) or type(error).__name__
            return True
        ends.append((name, file.tell()))
    return False


def _shown(value):
    """The value, or a reference if it is another name for a context or for the
    namespace."""
    if isinstance(value, str):
        for name, known in reserved.items():
            if known is value:
                return _Reference(_reserved, (name,))
    return _Reference(_namespace, ()) if value is main.__dict__ else value


class _Reference:
    __slots__ = ("function", "args")

    def __init__(self, function, args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


def _namespace():
    return main.__dict__


_NAMED["_namespace"] = _namespace


def _head():
    sources = {name: "".join(entry[2]) for name, entry in linecache.cache.items()
               if name.startswith("<snippet ") and len(entry) == 4}
    return {"python": sys.version_info[:3], "sources": sources}


def load(data):
    """Reads variables into the namespace: (how many came along, [left])."""
    start = 4 + int.from_bytes(data[:4], "little")
    ends = wire.decode(data[4:start].decode())
    file, left, moved = io.BytesIO(data), [], 0
    file.seek(start)
    with _findable():
        reader = _reader(file, left)
        for name, text in reader.load()["sources"].items():
            linecache.cache.setdefault(name, (len(text), None, text.splitlines(True), name))
        for name, end in ends[1:]:
            _begin(name, reader)
            try:
                value = main.__dict__[name] = reader.load()
                moved += type(value) not in (LeftBehind, _Hollow)
            except MemoryError:
                raise
            except (Exception, KeyboardInterrupt) as error:
                reason = _overdue() if type(error) is KeyboardInterrupt else str(error) or type(error).__name__
                reason = reason[:300]
                left.append({"name": name, "type": "value", "reason": reason})
                stand_in = main.__dict__[name] = LeftBehind("value", reason)
                file.seek(start + end)
                reader = _reader(file, left, _memo(reader, data[start : start + end], stand_in))
    return moved, left


def _memo(reader, data, stand_in):
    """The memo as it would be if all of data had been read: what failed is
    stand_in. Later pickles count on the number of entries."""
    memo = dict(reader.memo.copy())
    for i in range(_memoized(data)):
        memo.setdefault(i, stand_in)
    return memo


# How the argument of an opcode of protocol 5 is laid out: so many bytes, or a
# length of so many bytes and then as many more.
_FIXED = {b"K": 1, b"h": 1, b"q": 1, b"\x80": 1, b"M": 2, b"J": 4, b"j": 4, b"r": 4, b"G": 8, b"\x95": 8}
_SIZED = {b"\x8c": 1, b"C": 1, b"\x8a": 1, b"X": 4, b"B": 4, b"\x8b": 4, b"\x8d": 8, b"\x8e": 8, b"\x96": 8}


def _memoized(data):
    """Returns the number of objects that the pickles in data put into the memo."""
    at = count = 0
    while at < len(data):
        opcode = data[at : at + 1]
        at += 1 + _FIXED.get(opcode, 0)
        count += opcode == b"\x94"
        size = _SIZED.get(opcode)
        if size:
            at += size + int.from_bytes(data[at : at + size], "little")
    return count


def _reader(file, left, memo=None):
    reader = _Unpickler(file) if memo is None else _Recovering(file)
    reader.left, reader.name = left, ""
    if memo is not None:
        reader.memo = memo
    return reader
