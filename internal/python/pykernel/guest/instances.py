"""Instances of the session's classes whose own way to be copied would run the session's
code a second time, or forgets a part: containers, and values of classes with their own
methods.
"""

import copyreg
import functools
from collections import OrderedDict, defaultdict, deque

import definitions
import exceptions

_CONTAINERS = (OrderedDict, defaultdict, dict, list, set, deque)
SUBCLASSES = []  # (class, reduction of its instances and those of its subclasses)
_COPIES = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")


@functools.lru_cache(maxsize=None)
def _container_of(kind):
    return next((base for base in kind.__mro__ if base in _CONTAINERS), None)


def reducer(kind):
    """Returns the reduction for instances of a class that a snippet defined, None for
    the stock one."""
    if definitions.overrides(kind, *_COPIES):
        return None
    if issubclass(kind, BaseException):
        return exceptions.reduce_exception
    if _container_of(kind):
        return _reduce_container
    reduce = of_subclass(kind)
    if reduce is not None:
        return reduce
    if definitions.overrides(kind, "__new__", "__getattr__", "__getattribute__") or issubclass(kind, frozenset):
        return reduce_bare
    if kind.__reduce__ is not object.__reduce__ or kind.__reduce_ex__ is not object.__reduce_ex__:
        return _reduce_with_attributes
    return None


def of_subclass(kind):
    """Returns the reduction that a class shares with its subclasses, None if it has none."""
    return next((reduce for base, reduce in SUBCLASSES if issubclass(kind, base)), None)


def _reduce_with_attributes(value):
    """The way of a library's class may forget the attributes that its subclass has."""
    found = value.__reduce_ex__(5)
    attributes = getattr(value, "__dict__", None)
    slots = {name: getattr(value, name) for base in type(value).__mro__ if not definitions.importable(base)
             for name in base.__dict__.get("__slots__", ()) if name[:2] != "__" and hasattr(value, name)}
    if not isinstance(found, tuple) or not attributes and not slots:
        return found
    function, args, *rest = found
    return make_again, (function, args), (rest, (attributes, slots)), None, None, set_again


def make_again(function, args):
    return function(*args)


def set_again(value, state):
    rest, (attributes, slots) = state
    made, items, entries, setter = (*rest, None, None, None, None)[:4]
    if made is not None:
        setter(value, made) if setter else value.__setstate__(made) if hasattr(value, "__setstate__") else value.__dict__.update(made)
    for item in items or ():
        value.append(item)
    for key, item in entries or ():
        value[key] = item
    set_bare(value, (attributes, slots))


def _state(value):
    """Returns what object.__reduce_ex__ takes for the state: attributes and slots."""
    slots = {name: getattr(value, name) for name in copyreg._slotnames(type(value)) if hasattr(value, name)}
    return getattr(value, "__dict__", None), slots


def _reduce_container(value):
    kind = type(value)
    base = _container_of(kind)
    if issubclass(base, dict):
        items = list(base.items(value))
    else:
        items = list(base.__iter__(value))
    extra = value.maxlen if base is deque else value.default_factory if base is defaultdict else None
    return make_bare, (base, kind), (items, extra, _state(value)), None, None, set_container


def set_container(value, state):
    items, extra, rest = state
    base = _container_of(type(value))
    if issubclass(base, dict):
        if base is defaultdict:
            defaultdict.__init__(value, extra)
        for key, item in items:
            base.__setitem__(value, key, item)
    elif base is deque:
        deque.__init__(value, items, extra)
    elif base is set:
        set.update(value, items)
    else:
        list.extend(value, items)
    set_bare(value, rest)


def reduce_bare(value):
    kind = type(value)
    base = next(b for b in kind.__mro__ if definitions.importable(b) and "__new__" in b.__dict__)
    if issubclass(base, frozenset):
        args = (list(frozenset.__iter__(value)),)
    elif base is object:
        args = ()
    else:
        found = value.__reduce_ex__(4)
        args = found[1][1:] if found[0] is copyreg.__newobj__ else None
        if args is None:
            return found
    return make_bare, (base, kind, *args), _state(value), None, None, set_bare


def make_bare(base, kind, *args):
    """Makes an instance without the class's own __new__ and __init__."""
    return base.__new__(kind, *args)


def set_bare(value, state):
    attributes, slots = state
    if attributes:
        value.__dict__.update(attributes)
    for name, item in slots.items():
        object.__setattr__(value, name, item)


NAMED = make_bare, set_bare, set_container, make_again, set_again
