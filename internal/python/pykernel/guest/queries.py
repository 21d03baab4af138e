"""The guest's side of the calls of the REPL protocol.

The host binds arguments and knows all dialects (package repl). Only what JSON
cannot carry is done here: a Python type given as schema= goes out as JSON Schema
and the answer comes back as its instance; a slot that failed comes back as an
error object; sequences of any kind go out as lists.
"""

import json

import artefacts
import lazy
import protocol
import wire
from failures import SubCallError, TypedSubCallError

_SCHEMAS = ("schema", "output_type", "output_schema", "response_format", "response_model")
_IMAGES = ("images", "image")
_LISTS = ("prompts", "calls", "queries", "items")
_FAILED, _FAILED_TYPED = "__rlm_failed__", "__rlm_error__"


class Prediction(dict):
    """What predict returns: a dict whose members are attributes, too."""

    __slots__ = ()
    __module__ = "__main__"

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the prediction has no field {name!r}, only {', '.join(self)}") from None


# What can be no type is told by a look, without the module that knows types.
_PLAIN = (str, int, float, bool, list, dict, tuple, type(None))


def take_type(args, kwargs):
    """Cuts a schema out of the arguments, such as bool or a class: (args, kwargs, what
    makes its instance of an answer). The last is None without one."""
    for name in _SCHEMAS:
        if kwargs.get(name) is not None:
            rest = {k: v for k, v in kwargs.items() if k != name}
            return _typed(args, rest, kwargs[name])
    for i, value in enumerate(args):
        if i and type(value) not in _PLAIN and lazy.load("contracts").is_type(value):
            return _typed(args[:i] + args[i + 1:], kwargs, value)
    return args, kwargs, None


def _typed(args, kwargs, kind):
    text, rebuild = lazy.load("contracts").to_schema(kind)
    return args, {**kwargs, "schema": json.loads(text)}, rebuild


def _show(kwargs):
    """Returns arguments by name whose pictures can leave the sandbox."""
    for name in _IMAGES:
        if kwargs.get(name) is not None:
            kwargs = {**kwargs, name: artefacts.encoded(kwargs[name])}
    return kwargs


def single(args, kwargs):
    """Wraps functions with one answer."""
    args, kwargs, rebuild = take_type(args, _show(kwargs))
    return args, kwargs, lambda value: slot(value, rebuild)


def _listed(value):
    """Returns any sequence as a list, and any other value unchanged."""
    if isinstance(value, (str, bytes, dict)) or getattr(type(value), "__rlm_ref__", None) or not hasattr(value, "__iter__"):
        return value
    return list(value)


def batch(args, kwargs):
    """Wraps functions with a list of answers."""
    args, kwargs, rebuild = take_type(args, kwargs)
    own = {}

    def entries(value):
        value = _listed(value)
        if not isinstance(value, list):
            return value
        out = []
        for i, entry in enumerate(value):
            if isinstance(entry, dict):
                _, entry, own[i] = take_type((), _show(entry))
            elif isinstance(entry, tuple) and len(entry) == 2:
                entry = {"prompt": entry[0], "context": entry[1]}  # (prompt, context) pairs
            out.append(entry)
        return out

    args = tuple(entries(a) if i == 0 else _listed(a) for i, a in enumerate(args))
    kwargs = {k: entries(v) if k in _LISTS else _listed(v) if k.startswith(("context", "sub_context")) else v
              for k, v in kwargs.items()}
    return args, kwargs, lambda value: slots(value, rebuild, own)


def slots(values, rebuild, own=None):
    """Returns a list of answers as Python values; own are the rebuilders of single slots."""
    return [slot(value, (own or {}).get(i) or rebuild) for i, value in enumerate(values)]


def slot(value, rebuild):
    """Returns an answer as a Python value, or the error object of a call that failed."""
    if isinstance(value, dict) and len(value) == 1:
        if _FAILED in value:
            return SubCallError(value[_FAILED])
        if _FAILED_TYPED in value:
            return TypedSubCallError(value[_FAILED_TYPED])
    return wire.settle(value) if rebuild is None else rebuild(value)


def prediction(args, kwargs):
    return args, kwargs, lambda value: Prediction(wire.settle(value))


_BY_ARGUMENTS = {"one": single, "many": batch, "fields": prediction}

# How the arguments of each function of the protocol are converted, by its name.
CONVERTERS = {
    name: _BY_ARGUMENTS[arguments]
    for name, (_, arguments) in protocol.FUNCTIONS.items()
    if arguments in _BY_ARGUMENTS
}
