"""Objects of the standard library that move and that pickle does not know: matches, views,
queues, threads, futures and many more.
"""

import array
import asyncio
import concurrent.futures
import concurrent.futures.thread
import contextvars
import functools
import gc
import hashlib
import importlib
import json
import logging
import queue
import random
import re
import struct
import sys
import threading
import types
import typing
import weakref
from collections import OrderedDict

import definitions
import events
import instances
import sessionloop

def _reduce_logger(logger):
    """A logger of a class that a snippet defined; getLogger finds it by its name."""
    own = {name: value for name, value in vars(logger).items() if name not in OF_LOGGER}
    return make_logger, (type(logger), logger.name), own, None, None, set_logger


# What every logger has.
OF_LOGGER = ("name", "level", "parent", "propagate", "handlers", "disabled", "filters", "manager", "_cache")


def make_logger(kind, name):
    usual = logging.getLoggerClass()
    logging._loggerClass = kind
    try:
        return logging.getLogger(name)
    finally:
        logging._loggerClass = usual


def set_logger(logger, attributes):
    vars(logger).update(attributes)


def _reduce_match(match):
    return make_match, (match.re, match.string, match.pos, match.endpos, match.regs)


def make_match(pattern, string, pos, endpos, regs):
    """Matches again. A search from far away would take long for the last of many."""
    if regs[0][0] - pos < 10_000:
        for find in (pattern.search, pattern.match, pattern.fullmatch):
            found = find(string, pos, endpos)
            if found and found.regs == regs:
                return found
    for find in (pattern.match, pattern.fullmatch):
        found = find(string, regs[0][0], endpos)
        if found and found.regs == regs:
            return found
    for found in pattern.finditer(string, pos, endpos):
        if found.regs == regs:
            return found
    raise ValueError("this match cannot be found again")


def _reduce_struct(layout):
    return make_struct, (layout.format, layout.size)


# Codes of the same size as those of C's long and pointers, by the size of a long.
_OF_LONG = {4: str.maketrans("lLnNP", "iIiII"), 8: str.maketrans("lLnNP", "qQqQQ")}


def make_struct(layout, size):
    """What was packed in another tier must come apart here."""
    made = struct.Struct(layout)
    if made.size != size:
        made = struct.Struct(layout.translate(_OF_LONG[4 if struct.calcsize("l") == 8 else 8]))
        if made.size != size:
            raise ValueError("its numbers have other sizes here; use a format with standard sizes, such as '<l'")
        definitions.lost("Struct", f"{layout!r} has other sizes here: it is {made.format!r} now, with its old sizes")
    return made


def _reduce_array(value):
    return make_array, value.__reduce_ex__(5)[1], (getattr(value, "__dict__", None), {}), None, None, instances.set_bare


def make_array(kind, code, layout, data):
    made = array._array_reconstructor(kind, code, layout, data)
    if made.typecode != code:
        definitions.lost("array", f"items of type {code!r} have another size here: they are {made.typecode!r} now, of the old size")
    return made


def _reduce_view(view):
    mapping = next(m for m in gc.get_referents(view) if isinstance(m, dict))
    return make_view, (mapping, type(view).__name__.rpartition("_")[2])


def make_view(mapping, name):
    base = OrderedDict if isinstance(mapping, OrderedDict) else dict
    return getattr(base, name)(mapping)


def _reduce_proxy(proxy):
    return types.MappingProxyType, (gc.get_referents(proxy)[0],)


def _reduce_new_type(kind):
    if definitions.importable(kind, kind.__qualname__):
        return kind.__qualname__
    return make_new_type, (kind.__qualname__, kind.__supertype__, kind.__module__)


def make_new_type(name, supertype, module):
    kind = typing.NewType(name, supertype)
    kind.__module__ = module
    return kind


def _reduce_parameter(parameter):
    if definitions.importable(parameter, parameter.__name__):
        return parameter.__name__
    return make_parameter, (type(parameter).__name__, parameter.__name__)


def make_parameter(kind, name):
    return getattr(typing, kind)(name)


def _reduce_alias(alias):
    return make_alias, (alias.__name__, alias.__value__, alias.__type_params__)


def make_alias(name, value, parameters):
    return typing.TypeAliasType(name, value, type_params=parameters)


def _reduce_ref(ref):
    return make_ref, (ref(), ref.__callback__)


def make_ref(value, callback):
    return weakref.ref(value if value is not None else _Gone(), callback)


class _Gone:
    """What a dead reference referred to."""

    def end(self):
        pass


def _reduce_weak_method(ref):
    return weakref.WeakMethod, (ref(),) if ref() else (_Gone().end,)


def _reduce_weak_proxy(proxy):
    return weakref.proxy, (proxy.__init__.__self__,)


def _reduce_weak_dict(mapping):
    return type(mapping), (dict(mapping),)


def _reduce_weak_set(found):
    return type(found), (list(found),)


def make_of_version(version, function, *args):
    """Makes an instance whose attributes an older Python does not have all."""
    if tuple(version) < sys.version_info[:2]:
        raise ValueError("it is of an older version of Python")
    return function(*args)


def _reduce_queue(waiting):
    """The attributes of a queue differ between versions of Python."""
    return make_queue, (type(waiting), waiting.maxsize), (list(waiting.queue), waiting.unfinished_tasks), None, None, set_queue


def make_queue(kind, size):
    return kind(size)


def set_queue(waiting, state):
    items, waiting.unfinished_tasks = state
    waiting.queue.extend(items)


def _reduce_simple_queue(waiting):
    items = []
    while not waiting.empty():
        items.append(waiting.get_nowait())
    for item in items:
        waiting.put(item)
    return make_simple_queue, (), items, None, None, set_simple_queue


def make_simple_queue():
    return queue.SimpleQueue()


def set_simple_queue(waiting, items):
    for item in items:
        waiting.put(item)


def _reduce_system_random(value):
    """It has no state of its own."""
    return instances.make_bare, (random.Random, type(value)), (vars(value), {}), None, None, instances.set_bare


def _reduce_decoder(decoder):
    """What C code scans with is made from the decoder's other attributes."""
    made = {name: value for name, value in vars(decoder).items() if type(value).__module__ != "_json"}
    return instances.make_bare, (object, type(decoder)), made, None, None, set_decoder


def set_decoder(decoder, attributes):
    vars(decoder).update(attributes)
    if "scan_once" not in attributes:
        decoder.scan_once = json.scanner.make_scanner(decoder)


def _reduce_forward(reference):
    """Its code is for one version of Python."""
    return make_forward, (reference.__forward_arg__, reference.__forward_is_argument__)


def make_forward(text, is_argument):
    return typing.ForwardRef(text, is_argument)


def _reduce_super(bound):
    return super, (bound.__thisclass__, bound.__self__) if bound.__self__ is not None else (bound.__thisclass__,)


def _reduce_version(value):
    raise TypeError("it describes the interpreter that it comes from; read it again")


def _reduce_key_wrapper(key):
    function = next(f for f in gc.get_referents(key) if callable(f) and not isinstance(f, type))
    if hasattr(key, "obj"):
        return make_key, (function, key.obj)
    return functools.cmp_to_key, (function,)


def make_key(function, value):
    return functools.cmp_to_key(function)(value)


def _reduce_hash(value):
    name, size = value.name.replace("-", "_"), value.digest_size
    options = {"digest_size": size} if name[:5] == "blake" else {}
    shown = (16,) if name[:5] == "shake" else ()
    if value.digest(*shown) != make_hash(name, options).digest(*shown):
        raise TypeError("what a hash object has taken cannot be read; feed a new one")
    return make_hash, (name, options)


def make_hash(name, options):
    make = getattr(hashlib, name, None)
    return make(**options) if make else hashlib.new(name, **options)


def _reduce_memory(view):
    """A view of a part of its object does not tell where the part begins; if the object cannot
    change, a copy of the part is as good."""
    whole = memoryview(view.obj)
    shape = (view.format, view.shape) if view.ndim != 1 or view.format != whole.format else None
    if view.nbytes == whole.nbytes and view.contiguous and view.tobytes() == whole.tobytes():
        return make_memory, (view.obj, view.readonly, shape)
    if isinstance(view.obj, bytes) and view.contiguous:
        return make_memory, (view.tobytes(), True, shape)
    raise TypeError("a view of a part of an object that may change belongs to its interpreter")


def make_memory(value, readonly, shape):
    view = memoryview(value)
    if shape is not None:
        view = view.cast("B").cast(*shape)
    return view.toreadonly() if readonly and not view.readonly else view


def _reduce_variable(variable):
    """The default of a context variable shows where it has not been set."""
    try:
        default = (contextvars.Context().run(variable.get),)
    except LookupError:
        default = ()
    value = (variable.get(),) if variable in contextvars.copy_context() else ()
    return make_variable, (variable.name, default), (value,), None, None, set_variable


def make_variable(name, default):
    return contextvars.ContextVar(name, default=default[0]) if default else contextvars.ContextVar(name)


def set_variable(variable, state):
    if state[0]:
        variable.set(state[0][0])


def _reduce_context(context):
    return contextvars.Context, (), dict(context), None, None, set_context


def set_context(context, values):
    for variable, value in values.items():
        context.run(variable.set, value)


def _reduce_finalizer(finalizer):
    parts = finalizer.peek()
    return make_finalizer, (parts and (*parts, finalizer.atexit),)


def make_finalizer(parts):
    if parts is None:
        return weakref.finalize(_Gone(), int)  # its object ends here
    value, function, args, kwargs, at_exit = parts
    finalizer = weakref.finalize(value, function, *args, **(kwargs or {}))
    finalizer.atexit = at_exit
    return finalizer


def _reduce_local(local):
    return instances.make_bare, (threading.local, type(local)), (dict(local.__dict__), {}), None, None, instances.set_bare


def _reduce_module_like(module):
    return instances.make_bare, (types.ModuleType, type(module)), (vars(module), {}), None, None, instances.set_bare


def _reduce_thread(thread):
    """A thread that has not been started. Its parts differ between versions of Python."""
    if thread.ident is not None:
        raise TypeError("a thread runs where it was started")
    usual = vars(threading.Thread())
    own = {name: value for name, value in vars(thread).items() if name not in usual}
    return make_thread, (type(thread),), (
        thread._target, thread._args, thread._kwargs, thread.name, thread.daemon, own), None, None, set_thread


def make_thread(kind):
    return object.__new__(kind)


def set_thread(thread, state):
    target, args, kwargs, name, daemon, own = state
    threading.Thread.__init__(thread, None, target, name, args, kwargs, daemon=daemon)
    vars(thread).update(own)


def _reduce_future(future):
    if not future.done():
        raise TypeError("a call under way ends where it was started")
    if future.cancelled():
        return make_future, ()
    error = future.exception()
    return make_future, (None if error else future.result(),), error, None, None, set_failed


def make_future(*result):
    future = concurrent.futures.Future()
    if result:
        future.set_running_or_notify_cancel()
        future.set_result(result[0])
    else:
        future.cancel()
        future.set_running_or_notify_cancel()
    return future


def set_failed(future, error):
    future._exception = error


def _reduce_awaitable(future):
    """A future or task of asyncio that has ended."""
    if not future.done():
        raise TypeError("a task runs where it was started")
    name = future.get_name() if isinstance(future, asyncio.Task) else None
    if future.cancelled():
        return make_awaitable, (name, None)
    error = future.exception()
    return make_awaitable, (name, error, *(() if error else (future.result(),)))


def make_awaitable(name, error, *result):
    loop = sessionloop.session_loop()
    if name is not None and result:
        task = asyncio.Task(_return(result[0]), loop=loop, name=name)
        loop.run_until_complete(task)
        return task
    future = loop.create_future()
    if result:
        future.set_result(result[0])
    elif error is None:
        future.cancel()
    else:
        future.set_exception(error)
        future.exception()  # nobody is told that it was not asked for
    if name is not None:  # a task would keep the frames in which it fails again
        definitions.lost("Task", f"the task {name} has failed or was cancelled: it is a future now")
    return future


async def _return(result):
    return result


def _reduce_executor(executor):
    """An executor that has nothing to do. A process of its own makes threads when it needs them."""
    is_closed = getattr(executor, "_closed", False) or getattr(executor, "_shutdown", False)
    waiting = getattr(executor, "_work_queue", None)
    if waiting is not None and waiting.qsize() and not is_closed:
        raise TypeError("calls wait in it, which run where they were started")
    prefix = getattr(executor, "_thread_name_prefix", None) or getattr(executor, "_prefix", "")
    start = getattr(executor, "_initializer", None), getattr(executor, "_initargs", ())
    return make_executor, (executor._max_workers, is_closed, prefix, *start)


def make_executor(workers, is_closed, *options):
    executor = concurrent.futures.ThreadPoolExecutor(workers, *options)
    if is_closed:
        executor.shutdown()
    return executor


def reduce_module(module):
    """A module that a snippet made goes with its names."""
    name = module.__name__
    own = {key: value for key, value in vars(module).items() if key != "__builtins__"}
    return make_module, (name, sys.modules.get(name) is module), own, None, None, set_module


def make_module(name, is_listed):
    module = types.ModuleType(name)
    if is_listed:
        sys.modules[name] = module
    return module


def set_module(module, names):
    vars(module).update(names)


def stream_name(value):
    """Returns the name in sys of a stream of the session, None for another file."""
    return next((name for name in ("stdout", "stderr", "stdin") if getattr(sys, f"__{name}__", None) is value), None)


def make_stream(name):
    return getattr(sys, name)


def _hashes():
    return {type(getattr(hashlib, name)()) for name in hashlib.algorithms_guaranteed if hasattr(hashlib, name)}


definitions.SPECIAL.update({
    **dict.fromkeys((queue.Queue, queue.LifoQueue, queue.PriorityQueue), _reduce_queue),
    typing.ForwardRef: _reduce_forward,
    super: _reduce_super,
    **dict.fromkeys((type(sys.version_info), type(sys.flags)), _reduce_version),
    type(functools.cmp_to_key(len)): _reduce_key_wrapper,
    re.Match: _reduce_match,
    struct.Struct: _reduce_struct,
    array.array: _reduce_array,
    types.MappingProxyType: _reduce_proxy,
    **dict.fromkeys((type(f(m())) for m in (dict, OrderedDict) for f in (m.keys, m.values, m.items)), _reduce_view),
    weakref.ref: _reduce_ref,
    weakref.WeakMethod: _reduce_weak_method,
    weakref.ProxyType: _reduce_weak_proxy,
    weakref.CallableProxyType: _reduce_weak_proxy,
    weakref.WeakValueDictionary: _reduce_weak_dict,
    weakref.WeakKeyDictionary: _reduce_weak_dict,
    weakref.WeakSet: _reduce_weak_set,
    **dict.fromkeys(_hashes(), _reduce_hash),
    memoryview: _reduce_memory,
    contextvars.ContextVar: _reduce_variable,
    contextvars.Context: _reduce_context,
    weakref.finalize: _reduce_finalizer,
    threading.local: _reduce_local,
    **dict.fromkeys((threading.Thread, threading.Timer), _reduce_thread),
    concurrent.futures.Future: _reduce_future,
    asyncio.Future: _reduce_awaitable,
    asyncio.Task: _reduce_awaitable,
    concurrent.futures.thread.ThreadPoolExecutor: _reduce_executor,
})
if hasattr(events, "ThreadPoolExecutor"):  # tier wasm has its own
    definitions.SPECIAL[events.ThreadPoolExecutor] = _reduce_executor


instances.SUBCLASSES += (
    (logging.Logger, _reduce_logger), (threading.local, _reduce_local), (types.ModuleType, _reduce_module_like),
    (threading.Thread, _reduce_thread), (array.array, _reduce_array),
    (json.JSONDecoder, _reduce_decoder), (random.SystemRandom, _reduce_system_random),
    (queue.SimpleQueue, _reduce_simple_queue),
)
for _name, _reduce in (
    ("NewType", _reduce_new_type), ("ParamSpec", _reduce_parameter), ("TypeVarTuple", _reduce_parameter),
    ("TypeAliasType", _reduce_alias),
):
    if isinstance(getattr(typing, _name, None), type):
        definitions.SPECIAL[getattr(typing, _name)] = _reduce


def constants(kind):
    """Returns the names of the instances of a class that its module has, by identity:
    sentinels such as dataclasses.KW_ONLY."""
    module = sys.modules.get(kind.__module__)
    if module is None or module is definitions.main or kind.__module__ == "builtins" or not definitions.importable(kind):
        return {}
    return {id(value): name for name, value in list(vars(module).items()) if type(value) is kind}


def make_constant(module, name):
    return definitions.attribute(importlib.import_module(module), name)


NAMED = (
    make_match, make_view, make_new_type, make_parameter, make_alias, make_ref, make_stream, make_constant, make_key,
    make_hash, make_of_version, make_queue, set_queue, make_memory, make_variable, set_variable, set_context, make_finalizer,
    make_future, set_failed, make_executor, make_module, set_module, make_logger, set_logger, make_thread, set_thread,
    make_struct, make_array, make_awaitable, make_simple_queue, set_simple_queue, set_decoder, make_forward,
)
