"""How a value becomes an answer: JSON, or an error that the model can read.

An answer leaves the session, so what has no value of its own, such as a function or a
coroutine, raises here. The text of its repr() would pass for an answer.
"""

import collections
import collections.abc
import io
import itertools
import math
import types

import failures
import wire

MOST_ITEMS = 1_000_000  # of an iterator, which may have no end


def encode(answer, given):
    """Returns an answer's JSON; given is the value in it. Raises a TypeError if that is no
    answer, and what an iterator raises."""
    if isinstance(given, failures.SubCallError):
        raise TypeError(f"the answer is a sub-call that failed: {str.__str__(given)[:500]}")
    _refuse_failed(given)
    _refuse_ambiguous(given)
    return Encoding().encode(answer)


def _refuse_failed(value):
    """Raises if a value has a sub-call that failed in it."""
    seen, left = set(), [value] if failures.failed else []
    while left:
        value = left.pop()
        if isinstance(value, failures.SubCallError):
            raise TypeError("the answer has a sub-call that failed in it; repeat the call, or leave it out: "
                            + str.__str__(value)[:500])
        if isinstance(value, (list, tuple, set, frozenset, dict)) and id(value) not in seen:
            seen.add(id(value))
            left.extend(value)
            if isinstance(value, dict):
                left.extend(value.values())


_PLAIN = frozenset((str, int, bool, type(None)))


def _refuse_ambiguous(value):
    """Raises if JSON has no form of its own for a part of a value: for NaN and infinity, and for
    two keys of one dict that become the same text."""
    seen, left = set(), [(value, "")]
    while left:
        value, place = left.pop()
        if isinstance(value, float):
            if not math.isfinite(value):
                raise TypeError(f"the answer has {float.__repr__(value)}{place and ' at ' + place}, which JSON lacks: "
                                "pass None or a text in its place")
            continue
        if id(value) in seen or not isinstance(value, (list, tuple, dict)):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            _refuse_same_keys(value, place)
        if not _PLAIN.issuperset(map(type, value.values() if isinstance(value, dict) else value)):
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            left.extend((part, f"{place}[{key!r}]") for key, part in parts if type(part) not in _PLAIN)


def _refuse_same_keys(value, place):
    if all(type(key) is str for key in value):
        return
    first = {}
    for key in value:
        text = wire.key_text(key)
        if text in first:
            raise TypeError(f"the answer has two keys that are {text!r} in JSON{place and ', in ' + place}: "
                            f"{first[text]!r} and {key!r}; rename one of them")
        first[text] = key


class Encoding:
    """The encoding of one answer. The encoder may ask for a value twice, and an iterator can
    be read once: what became of each is kept."""

    def __init__(self):
        self.kept = {}  # id -> the value, which lives as long as its id counts, and its form
        self.failure = None

    def encode(self, answer):
        text = wire.encode(answer, self.convert)
        if self.failure is not None:
            raise self.failure
        return text

    def convert(self, value):
        if self.failure is not None:
            return None  # all is lost already
        kept = self.kept.get(id(value))
        if kept is not None:
            return kept[1]
        try:
            converted = _convert(value)
            _refuse_failed(converted)
            _refuse_ambiguous(converted)
        except MemoryError:
            raise
        except Exception as error:
            self.failure, converted = error, None
        self.kept[id(value)] = value, converted
        return converted


def _convert(value):
    """Converts a value that JSON lacks."""
    _check(value)
    for convert in (_from_arrays, _from_collections):
        converted = convert(value)
        if converted is not None:
            return converted[0]
    converted = wire.plain(value)
    if type(value).__str__ is object.__str__ and converted == repr(value):
        if callable(value):
            name = getattr(value, "__name__", _kind(value))
            raise TypeError(f"the function {name} is not an answer: call it, and pass the result")
        if converted.startswith("<"):
            raise TypeError(f"a {_kind(value)} has no value: pass its fields, or what its method returns")
    return converted


_AWAITED = (types.CoroutineType, types.AsyncGeneratorType, collections.abc.Awaitable, collections.abc.AsyncIterator)


def _check(value):
    """Raises if a value is not an answer whatever its text is."""
    if value is ... or value is NotImplemented:
        raise TypeError("... stands for an answer and is none: pass the value itself")
    if isinstance(value, (type, types.GenericAlias)):
        raise TypeError(f"the class {getattr(value, '__name__', value)} is not an answer: pass a value")
    if isinstance(value, types.ModuleType):
        raise TypeError(f"the module {value.__name__} is not an answer: pass a value")
    if isinstance(value, _AWAITED):
        raise TypeError(f"a {_kind(value)} is not an answer: await it, and pass the result")
    if isinstance(value, BaseException):
        raise TypeError(f"the exception {_kind(value)} is not an answer: {str(value)[:500]}")
    if isinstance(value, io.IOBase):
        raise TypeError("a file is not an answer: read it, and pass the text")


def _kind(value):
    return type(value).__name__


def _from_arrays(value):
    """Returns (list or value,) for an array, a table or a scalar of NumPy, pandas and their
    kin, None for anything else."""
    package = type(value).__module__.partition(".")[0]
    if package == "pandas":
        return _from_pandas(value)
    if getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M") and hasattr(value, "astype"):
        value = value.astype(str)  # tolist() of nanoseconds is bare numbers
    for name in ("tolist", "to_list", "to_dicts", "to_pylist"):
        method = getattr(value, name, None)
        if callable(method):
            converted = method()
            return None if converted is value else (converted,)
    return None


def _from_pandas(value):
    kind = type(value).__name__
    if kind in ("NaTType", "NAType"):
        return (None,)
    if kind not in ("Series", "DataFrame"):
        method = getattr(value, "tolist", None)
        return (method(),) if callable(method) else None
    value = value.astype(object).where(value.notna(), None)  # NaN is how it says that a value is missing
    index = value.index
    is_plain = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    if kind == "Series":
        if is_plain:
            return (value.tolist(),)
        return (value.to_dict() if index.is_unique else list(value.items()),)
    if is_plain:
        return (value.to_dict("records"),)
    return (value.to_dict("index") if index.is_unique else value.reset_index().to_dict("records"),)


def _from_collections(value):
    """Returns (list or dict,) for an iterator, a view or a container, None for anything else."""
    if hasattr(type(value), "__rlm_list__") or hasattr(type(value), "__rlm_ref__"):
        return None
    if isinstance(value, collections.abc.Iterator):
        items = list(itertools.islice(value, MOST_ITEMS + 1))
        if len(items) > MOST_ITEMS:
            raise TypeError(f"an iterator of more than {MOST_ITEMS:,} items is not an answer: take a part of it")
        return (items,)
    if isinstance(value, collections.UserString):
        return (value.data,)
    if isinstance(value, (collections.abc.MappingView, collections.deque, range, collections.UserList)):
        return (list(value),)
    if isinstance(value, (collections.ChainMap, collections.UserDict, types.MappingProxyType)):
        return (dict(value),)
    return None
