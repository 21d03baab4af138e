"""What a session sets in modules, so that it moves with the variables: the decimal context,
the random state, the configuration of logging, the process's environment and limits.

Each setting is taken only where it differs from what this interpreter began with, and
relative to that: another tier has another sys.path.
"""

import abc
import asyncio
import atexit
import codecs
import collections.abc
import concurrent.futures.thread
import contextlib
import decimal
import functools
import gc
import importlib
import io
import logging
import numbers
import os
import random
import signal
import stat
import sys
import threading
import time
import types
import warnings
import weakref
import _locale

import definitions
import library
import outfolder
import patches
import sessionloop

_stock = {}  # name of a setting -> what this interpreter began with
_found = set()  # the files and pipes that were there before
_recorded = []  # (module, function, args, kwargs): what snippets registered, and nothing lists


def begin():
    """Remembers what there is before the first snippet."""
    patches.prepare = _record_functions
    _stock.update((name, take()) for name, (take, _) in _SETTINGS.items())
    _found.update(_list_files(), _list_pipes())
    patches.begin()


def find_packages(folder):
    """Has the packages of a folder found before those that this Python has, as if it had begun so."""
    at = next((i for i, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
    sys.path.insert(at, folder)
    _stock["sys.path"].insert(at, folder)


keep = patches.keep  # takes what a module has now for its own


def taken():
    """Yields (name, value) of each setting that a snippet has changed."""
    for name, (take, _) in _SETTINGS.items():
        try:
            value = take()
            if name not in _given and value == _stock[name]:
                continue
            value = _relative.get(name, lambda value, stock: value)(value, _stock[name])
        except Exception as error:  # a snippet has put something else in place of what is asked
            definitions.losses.name = name
            definitions.lost("setting", f"it cannot be read: {error}")
            continue
        if value or name not in _EMPTY:
            yield name, value
    for call in _take_recorded():
        yield f"{call[0]}.{call[1]}", call


# Libraries change these, too.
_EMPTY = ("modules made by hand", "limits of resources", "warnings filters", "event loop", "clocks")


_given = set()  # the settings that came from another interpreter; a third may have begun with others


def give(name, value):
    """Makes a setting of another interpreter the one of this."""
    if name not in _SETTINGS:
        _repeat(value)
        return
    _given.add(name)
    _SETTINGS[name][1](value)


def staying():
    """Yields (name, type, reason) of what runs or waits here, and what no variable has."""
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not _is_idle(thread):
            yield f"thread {thread.name}", type(thread).__name__, "a thread runs where it was started"
    loop = sessionloop.current()
    if loop is not None and not loop.is_closed():
        for task in asyncio.all_tasks(loop):
            yield f"task {task.get_name()}", "Task", "a task runs where it was started"
        for handle in getattr(loop, "_scheduled", ()):
            if not handle.cancelled() and patches.of_snippet(getattr(handle, "_callback", None)):
                yield "a timer of the event loop", "TimerHandle", "it waits where it was started"
    for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF"):
        if hasattr(signal, "getitimer") and signal.getitimer(getattr(signal, name))[0]:
            yield f"signal.{name}", "timer", "it runs where it was started"
    for path in sorted(_list_files() - _found):
        yield path, "file", "a file stays in the tier where it was written; write it again"
    for number in sorted(_list_pipes() - _found):
        yield f"descriptor {number}", "pipe", "a pipe belongs to its process"
    if gc.garbage and "garbage" in patches.mentioned():
        yield "gc.garbage", "list", "it belongs to the garbage collector"
    for tool in map(sys.monitoring.get_tool, range(6)) if hasattr(sys, "monitoring") else ():
        if tool is not None:
            yield "sys.monitoring", "tool", f"the tool {tool} watches its interpreter; register it again"
    if "tracemalloc" in sys.modules and sys.modules["tracemalloc"].is_tracing():
        yield "tracemalloc", "traces", "the traces belong to their interpreter; start it again"


def _is_idle(thread):
    """Reports whether a thread of an executor waits for work."""
    if getattr(thread, "_target", None) is not concurrent.futures.thread._worker:
        return False
    executor = thread._args[0]()
    return executor is None or (
        not executor._work_queue.qsize() and executor._idle_semaphore._value >= len(executor._threads))


def _list_files():
    """Returns what lies in the folders of the sandbox."""
    found = set()
    for folder in ("/sandbox", "/tmp", "/dev/shm"):
        try:
            found.update(f"{folder}/{name}" for name in os.listdir(folder) if name[:1] != "." and name != "__pycache__")
        except OSError:
            pass  # this tier has none
    return found


def _list_pipes():
    found = set()
    for number in range(3, 200):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                found.add(number)
        except OSError:
            pass  # it is closed
    return found


# --- settings -----------------------------------------------------------------


def _take_decimal():
    return [_context_parts(c) for c in _decimal_contexts()]


def _decimal_contexts():
    return decimal.getcontext(), decimal.DefaultContext, decimal.BasicContext, decimal.ExtendedContext


def _context_parts(context):
    def names(signals):
        return sorted(signal.__name__ for signal, on in signals.items() if on)

    return {
        "prec": context.prec, "rounding": context.rounding, "Emin": context.Emin, "Emax": context.Emax,
        "capitals": context.capitals, "clamp": context.clamp,
        "flags": names(context.flags), "traps": names(context.traps),
    }


def _give_decimal(contexts):
    for context, parts in zip(_decimal_contexts(), contexts):
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
    _stock["os.environ"].update(dict.fromkeys([*changed, *removed]))  # so that they are changes here, too
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


def _relative_warnings(value, stock):
    """Returns nothing if only libraries have added filters: they do so anywhere."""
    return value if "warnings" in patches.mentioned() else []


def _give_warnings(filters):
    warnings.filters[:] = filters
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):
        if hasattr(warnings, name):
            getattr(warnings, name)()
            break


_LOGGER = ("level", "propagate", "disabled", "handlers", "filters")


def _logger_parts(logger):
    parts = {name: list(value) if isinstance(value := getattr(logger, name), list) else value for name in _LOGGER}
    return {**parts, "own": {name: value for name, value in vars(logger).items() if name not in library.OF_LOGGER}}


def _take_logging():
    loggers = {name: (logger, _logger_parts(logger)) for name, logger in logging.root.manager.loggerDict.items()
               if isinstance(logger, logging.Logger)
               and (_logger_parts(logger) != _FRESH or type(logger).__module__ == "__main__")}
    manager = logging.root.manager
    return {
        "root": _logger_parts(logging.root), "loggers": loggers, "disable": manager.disable,
        "makers": (manager.loggerClass, manager.logRecordFactory),
        "levels": dict(logging._levelToName), "raise": logging.raiseExceptions,
        "warnings": logging._warnings_showwarning is not None,
    }


_FRESH = {"level": 0, "propagate": True, "disabled": False, "handlers": [], "filters": [], "own": {}}


def _give_logging(value):
    for level, name in value["levels"].items():
        if logging._levelToName.get(level) != name:
            logging.addLevelName(level, name)
    logging.raiseExceptions = value["raise"]
    logging.captureWarnings(value["warnings"])
    logging.root.manager.loggerClass, logging.root.manager.logRecordFactory = value["makers"]
    for logger, parts in [(logging.root, value["root"]), *value["loggers"].values()]:
        logger.__dict__.update(parts["own"])
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
    """Returns what snippets registered; a module registers its own anywhere."""
    return [(base, kind) for base, kind in value - stock if patches.of_snippet(kind)]


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
    return gc.isenabled(), gc.get_threshold(), gc.get_debug()


def _give_collector(value):
    enabled, threshold, debug = value
    gc.set_debug(debug)
    gc.set_threshold(*threshold)
    (gc.enable if enabled else gc.disable)()


# Functions that register or set something which cannot be asked for.
_RECORDED = {
    "atexit": ("register",), "shutil": ("register_archive_format", "register_unpack_format"), "codecs": ("register", "register_error"), "sys": ("addaudithook",),
    "gettext": ("textdomain", "bindtextdomain"), "mimetypes": ("add_type",), "multiprocessing": ("set_start_method",),
    "numpy": ("set_printoptions", "seterr"),
}


def _record_functions(module):
    for name in _RECORDED.get(module, ()):
        _record(sys.modules[module], name)


def _record(module, name):
    """Has a function of a module note the calls of snippets."""
    stock = getattr(module, name)

    @functools.wraps(stock)
    def recorder(*args, **kwargs):
        made = stock(*args, **kwargs)
        if sys._getframe(1).f_code.co_filename.startswith("<snippet "):
            _recorded.append((module.__name__, name, args, kwargs))
        return made

    setattr(module, name, recorder)
    undo = getattr(module, f"un{name}", None)
    if undo is None:
        return

    @functools.wraps(undo)
    def undoer(function):
        undo(function)
        _recorded[:] = [call for call in _recorded if call[:2] != (module.__name__, name) or call[2][:1] != (function,)]

    setattr(module, undo.__name__, undoer)


def _take_recorded():
    if not atexit._ncallbacks():  # they have run
        _recorded[:] = [call for call in _recorded if call[0] != "atexit"]
    return list(_recorded)


def _repeat(call):
    module, name, args, kwargs = call
    getattr(importlib.import_module(module), name)(*args, **kwargs)
    _recorded.append(call)


def _take_signals():
    return {number: handler for number in _signals() if (handler := signal.getsignal(number)) is not None}


def _signals():
    """Returns the signals whose handlers last. That of SIGINT is set anew for each snippet."""
    if hasattr(signal, "valid_signals"):
        return [int(number) for number in signal.valid_signals() if number != signal.SIGINT]
    return [int(number) for name, number in vars(signal).items()
            if name[:3] == "SIG" and name[3:4].isalpha() and type(number) is signal.Signals and number != signal.SIGINT]


def _relative_signals(value, stock):
    return {number: handler for number, handler in value.items() if stock.get(number) != handler}


def _give_signals(handlers):
    for number, handler in handlers.items():
        _stock["signal handlers"].pop(number, None)
        signal.signal(number, handler)


def _take_blocked():
    return sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))) if hasattr(signal, "pthread_sigmask") else []


def _give_blocked(numbers):
    if numbers:
        signal.pthread_sigmask(signal.SIG_SETMASK, numbers)


_CATEGORIES = ("LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES")


def _take_locale():
    return {name: _locale.setlocale(getattr(_locale, name)) for name in _CATEGORIES if hasattr(_locale, name)}


def _relative_locale(value, stock):
    return {name: text for name, text in value.items() if stock.get(name) != text}


def _give_locale(value):
    for name, text in value.items():
        _stock["locale"].pop(name, None)
        _locale.setlocale(getattr(_locale, name), text)


def _take_zone():
    return time.timezone, time.altzone, time.tzname


def _give_zone(zone):
    """Follows the variable TZ, as time.tzset did where the session comes from."""
    if hasattr(time, "tzset"):
        time.tzset()
    if _take_zone() != zone:
        raise ValueError("this tier has no such time zone; use datetime with an offset")


def _take_mask():
    if not hasattr(os, "umask"):
        return None
    mask = os.umask(0o77)
    os.umask(mask)
    return mask


def _take_stack():
    size = threading.stack_size()  # this sets it to the default
    if size:
        threading.stack_size(size)
    return size


def _take_limits():
    resource = sys.modules.get("resource")
    if resource is None:
        return {}
    return {name: resource.getrlimit(getattr(resource, name))[0] for name in _LIMITS if hasattr(resource, name)}


_LIMITS = ("RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_STACK")


def _relative_limits(value, stock):
    return {name: limit for name, limit in value.items() if stock.get(name) != limit}


def _give_limits(value):
    resource = importlib.import_module("resource")
    for name, limit in value.items():
        _stock["limits of resources"].pop(name, None)
        resource.setrlimit(getattr(resource, name), (limit, resource.getrlimit(getattr(resource, name))[1]))


def _take_finalizers():
    """Returns the finalizers of snippets. Objects that nothing else refers to have ended."""
    return [found for found in list(weakref.finalize._registry)
            if (parts := found.peek()) and (patches.of_snippet(parts[1]) or patches.of_snippet(parts[0]))]


def _take_hand_made():
    """Returns what snippets put among the modules."""
    return {name: module for name, module in list(sys.modules.items())
            if name not in ("__main__", "_rlm") and getattr(getattr(module, "__spec__", None), "name", None) != name}


def _relative_hand_made(value, stock):
    return {name: module for name, module in value.items()
            if name not in stock and (type(module) is not types.ModuleType or name.rpartition(".")[2] in patches.mentioned())}


def _give_hand_made(modules):
    sys.modules.update(modules)


def _take_numpy():
    """Returns the state of numpy's random numbers, if the session chose it."""
    module = sys.modules.get("numpy.random")
    if module is None or not {"seed", "set_state"} & patches.mentioned():
        return None
    kind, keys, *rest = module.get_state()
    return (kind, keys.tolist(), *rest)


def _give_numpy(state):
    importlib.import_module("numpy.random").set_state(state)


def _take_pandas():
    """Returns the options of pandas that are not as they were."""
    module = sys.modules.get("pandas._config.config")
    if module is None:
        return {}
    return {name: value for name, option in module._registered_options.items()
            if (value := module._get_root(name)[0][name.rpartition(".")[2]]) != option.defval}


def _give_pandas(options):
    module = importlib.import_module("pandas")
    for name, value in options.items():
        module.set_option(name, value)


def _pair(module, take, give):
    """Returns a setting that some tiers lack."""
    return getattr(module, take, lambda: None), getattr(module, give, _refuse)


def _refuse(value):
    raise ValueError("this tier does not have the setting")


def _take_clocks():
    """Returns the time that the session has used, if it reads it: the next interpreter goes on from
    there."""
    return {name: getattr(time, name)() for name in _CLOCKS if name in patches.mentioned() and hasattr(time, name)}


_CLOCKS = ("process_time", "process_time_ns", "thread_time", "thread_time_ns")


def _give_clocks(times):
    for name, value in times.items():
        if hasattr(time, name):
            _advance(name, getattr(time, name), value)


def _advance(name, stock, value):
    ahead = value - stock()

    def clock():
        return stock() + ahead

    sessionloop.put_in_place(clock, stock)
    patches.keep_name("time", name)


def _take_faults():
    faulthandler = sys.modules.get("faulthandler")
    return faulthandler is not None and faulthandler.is_enabled()


def _give_faults(is_enabled):
    faulthandler = importlib.import_module("faulthandler")
    (faulthandler.enable if is_enabled else faulthandler.disable)()


def _give_stdin(stream):
    sys.stdin = stream


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
    "files below /out": (outfolder.take, outfolder.give),
    "working folder": (_take_folder, os.chdir),
    "socket timeout": (_take_timeout, _give_timeout),
    "garbage collector": (_take_collector, _give_collector),
    "signal handlers": (_take_signals, _give_signals),
    "blocked signals": (_take_blocked, _give_blocked),
    "locale": (_take_locale, _give_locale),
    "time zone": (_take_zone, _give_zone),
    "file mask": (_take_mask, getattr(os, "umask", _refuse)),
    "limits of resources": (_take_limits, _give_limits),
    "stack of threads": (_take_stack, threading.stack_size),
    "switch interval": (sys.getswitchinterval, sys.setswitchinterval),
    "origins of coroutines": (sys.get_coroutine_origin_tracking_depth, sys.set_coroutine_origin_tracking_depth),
    "hooks of asynchronous generators": (
        lambda: tuple(sys.get_asyncgen_hooks()), lambda hooks: sys.set_asyncgen_hooks(*hooks)),
    "flags of dlopen": _pair(sys, "getdlopenflags", "setdlopenflags"),
    "event loop": (sessionloop.settings, sessionloop.set_settings),
    "clocks": (_take_clocks, _give_clocks),
    "faulthandler": (_take_faults, _give_faults),
    "sys.stdin": (lambda: sys.stdin, _give_stdin),
    "numpy random state": (_take_numpy, _give_numpy),
    "pandas options": (_take_pandas, _give_pandas),
    "finalizers": (_take_finalizers, lambda found: None),
    "modules made by hand": (_take_hand_made, _give_hand_made),
    "recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
}
_relative = {
    "os.environ": _relative_environ, "sys.path": _relative_path, "registered classes": _relative_registered,
    "signal handlers": _relative_signals, "locale": _relative_locale, "warnings filters": _relative_warnings,
    "limits of resources": _relative_limits, "modules made by hand": _relative_hand_made,
}
