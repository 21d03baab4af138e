"""What a session sets in modules, so that it moves with the variables: the decimal context,
the random state, the configuration of logging, the process's environment and limits.

Each setting is taken only where it differs from what this interpreter began with, and
relative to that: another tier has another sys.path. What a session put in place of a
module's own function cannot move; it is named.
"""

import abc
import collections.abc
import contextlib
import decimal
import gc
import importlib
import io
import logging
import numbers
import os
import random
import sys
import types
import warnings

import definitions

# Set by begin: what an interpreter has before its first snippet.
_stock = {}
_modules = {}  # name -> its public names and their values


def begin():
    """Remembers what there is before the first snippet."""
    _stock.update((name, take()) for name, (take, _) in _SETTINGS.items())
    for name, _ in _module_list():
        keep(name)


def keep(name):
    """Takes what a module has now for its own."""
    _modules[name] = {k: v for k, v in vars(sys.modules[name]).items() if not k.startswith("_") and v is not None}


def _module_list():
    """Returns the modules that were imported; a snippet may have put others among them."""
    return [(name, module) for name, module in list(sys.modules.items())
            if type(module) is types.ModuleType and getattr(module, "__spec__", None) and name != "__main__"]


def taken():
    """Yields (name, value) of each setting that a snippet has changed."""
    for name, (take, _) in _SETTINGS.items():
        value = take()
        if value != _stock[name]:
            yield name, _relative.get(name, lambda value, stock: value)(value, _stock[name])


def give(name, value):
    """Makes a setting of another interpreter the one of this."""
    _SETTINGS[name][1](value)


def patched():
    """Yields (name, type) of what snippets put in place of a module's own."""
    for module_name, module in _module_list():
        stock = _modules.get(module_name, _NONE) if module_name != "sys" else _NONE
        for name, value in list(vars(module).items()):
            if stock.get(name, value) is not value and (module_name, name) not in _SET or _of_snippet(value):
                yield f"{module_name}.{name}", type(value).__name__


_NONE = {}
_SET = frozenset((("logging", "raiseExceptions"), ("warnings", "showwarning")))  # these are settings


def _of_snippet(value):
    """Reports whether a snippet defined a function or class."""
    if isinstance(value, types.FunctionType):
        return value.__code__.co_filename.startswith("<snippet ")
    return isinstance(value, type) and value.__module__ == "__main__"


# --- settings -----------------------------------------------------------------


def _take_decimal():
    return [_context_parts(c) for c in (decimal.getcontext(), decimal.DefaultContext)]


def _context_parts(context):
    def names(signals):
        return sorted(signal.__name__ for signal, on in signals.items() if on)

    return {
        "prec": context.prec, "rounding": context.rounding, "Emin": context.Emin, "Emax": context.Emax,
        "capitals": context.capitals, "clamp": context.clamp,
        "flags": names(context.flags), "traps": names(context.traps),
    }


def _give_decimal(contexts):
    for context, parts in zip((decimal.getcontext(), decimal.DefaultContext), contexts):
        for name, value in parts.items():
            if name in ("flags", "traps"):
                signals = getattr(context, name)
                for signal in signals:
                    signals[signal] = signal.__name__ in value
            else:
                setattr(context, name, value)


def _give_argv(value):
    sys.argv[:] = value


def _relative_environ(value, stock):
    return (
        {name: text for name, text in value.items() if stock.get(name) != text},
        [name for name in stock if name not in value],
    )


def _give_environ(changes):
    changed, removed = changes
    os.environ.update(changed)
    for name in removed:
        os.environ.pop(name, None)


def _relative_path(value, stock):
    """Returns what stands before and after the interpreter's own folders, and what is gone."""
    own = [i for i, entry in enumerate(value) if entry in stock]
    first = own[0] if own else len(value)
    after = [entry for entry in value[first:] if entry not in stock]
    return value[:first], after, [entry for entry in stock if entry not in value]


def _give_path(change):
    before, after, gone = change
    sys.path[:] = before + [e for e in sys.path if e not in gone] + after


def _take_csv():
    csv = sys.modules.get("csv")
    if csv is None:
        return [None, {}]
    fields = ("delimiter", "doublequote", "escapechar", "lineterminator", "quotechar", "quoting", "skipinitialspace", "strict")
    return [csv.field_size_limit(), {
        name: {field: getattr(csv.get_dialect(name), field) for field in fields}
        for name in csv.list_dialects() if name not in ("excel", "excel-tab", "unix")
    }]


def _give_csv(value):
    csv = importlib.import_module("csv")
    limit, dialects = value
    csv.field_size_limit(limit)
    for name, fields in dialects.items():
        csv.register_dialect(name, **fields)


def _take_warnings():
    return list(warnings.filters)


def _give_warnings(filters):
    warnings.filters[:] = filters
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):
        if hasattr(warnings, name):
            getattr(warnings, name)()
            break


_LOGGER = ("level", "propagate", "disabled", "handlers", "filters")


def _logger_parts(logger):
    return {name: list(value) if isinstance(value := getattr(logger, name), list) else value for name in _LOGGER}


def _take_logging():
    loggers = {name: _logger_parts(logger) for name, logger in logging.root.manager.loggerDict.items()
               if isinstance(logger, logging.Logger) and _logger_parts(logger) != _FRESH}
    return {
        "root": _logger_parts(logging.root), "loggers": loggers, "disable": logging.root.manager.disable,
        "levels": dict(logging._levelToName), "raise": logging.raiseExceptions,
        "warnings": logging._warnings_showwarning is not None,
    }


_FRESH = {"level": 0, "propagate": True, "disabled": False, "handlers": [], "filters": []}


def _give_logging(value):
    for level, name in value["levels"].items():
        if logging._levelToName.get(level) != name:
            logging.addLevelName(level, name)
    logging.raiseExceptions = value["raise"]
    logging.captureWarnings(value["warnings"])
    for logger, parts in [(logging.root, value["root"])] + [
        (logging.getLogger(name), parts) for name, parts in value["loggers"].items()
    ]:
        logger.__dict__.update({name: parts[name] for name in _LOGGER if name != "level"})
        logger.setLevel(parts["level"])
        for handler in parts["handlers"]:
            if isinstance(handler, logging.Handler):
                logging._addHandlerRef(handler)
    logging.disable(value["disable"])


_ABSTRACT = [
    kind for module in (collections.abc, numbers, io, os, contextlib) for kind in vars(module).values()
    if isinstance(kind, abc.ABCMeta)
]


def _take_registered():
    """Returns the classes that are registered with abstract ones of the standard library."""
    found = ((base, ref()) for base in dict.fromkeys(_ABSTRACT) for ref in abc._get_dump(base)[0])
    return {(base, kind) for base, kind in found if kind is not None}


def _relative_registered(value, stock):
    """Returns what snippets registered; a module that registers its own does so anywhere."""
    return [(base, kind) for base, kind in value - stock if not definitions.importable(kind)]


def _give_registered(pairs):
    for base, kind in pairs:
        base.register(kind)


def _take_digits():
    return sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else None


def _give_digits(value):
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(value)


def _take_folder():
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed


def _take_timeout():
    socket = sys.modules.get("socket")
    return socket and socket.getdefaulttimeout()


def _give_timeout(value):
    importlib.import_module("socket").setdefaulttimeout(value)


def _take_collector():
    return gc.isenabled(), gc.get_threshold()


def _give_collector(value):
    enabled, threshold = value
    gc.set_threshold(*threshold)
    (gc.enable if enabled else gc.disable)()


# name -> (take, give). The limit of recursion comes last: the others need room.
_SETTINGS = {
    "decimal context": (_take_decimal, _give_decimal),
    "random state": (random.getstate, random.setstate),
    "os.environ": (lambda: dict(os.environ), _give_environ),
    "sys.path": (lambda: list(sys.path), _give_path),
    "sys.argv": (lambda: list(sys.argv), _give_argv),
    "csv settings": (_take_csv, _give_csv),
    "warnings filters": (_take_warnings, _give_warnings),
    "logging configuration": (_take_logging, _give_logging),
    "registered classes": (_take_registered, _give_registered),
    "digits of int": (_take_digits, _give_digits),
    "working folder": (_take_folder, os.chdir),
    "socket timeout": (_take_timeout, _give_timeout),
    "garbage collector": (_take_collector, _give_collector),
    "recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
}
_relative = {"os.environ": _relative_environ, "sys.path": _relative_path, "registered classes": _relative_registered}
