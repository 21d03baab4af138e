"""Runs snippets: one namespace, CPython's own tracebacks, a report to the host."""

import ast
import asyncio
import builtins
import collections
import datetime
import functools
import gc
import itertools
import json
import linecache
import math
import random
import re
import statistics
import sys
import time
import traceback
import types
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
from builtins import compile as parse
from inspect import CO_COROUTINE

import _rlm

import advice
import artefacts
import awaits
import combinators
import contexts
import definitions
import environment
import events
import failures
import finish
import hostcall
import lazy
import locks
import missing
import outfolder
import output
import parts
import protocol
import pydantics
import replies
import sessionloop
import state
import threads
import wire

compile_plain = _rlm.compile
OK, RAISED, EXITED = 0, 1, 2
RESEED, CONFIGURE, EXPORT, IMPORT = 1, 2, 4, 8  # flags; the snippet's ordinal stands above bit 8
_ECHO = "__rlm_echo__"
_LIMIT = 65536  # characters of a message or traceback sent to the host

_main = types.ModuleType("__main__")
_globals = _main.__dict__
_stock_builtins = dict(builtins.__dict__)
_reserved = {}


class Quitter:
    """exit and quit, as the interactive interpreter has them."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Use {self.name}() to leave the snippet"

    def __call__(self, code=None):
        raise SystemExit(code)


class Helper:
    """help, as the interactive interpreter has it."""

    def __repr__(self):
        return "Type help(object) for help about object."

    def __call__(self, *request):
        if not request:
            print(repr(self))
        else:
            lazy.load("helping").show(*request)


def prepare():
    """Builds the namespace; runs once, before the image is taken."""
    builtins.exit, builtins.quit, builtins.help = Quitter("exit"), Quitter("quit"), Helper()
    builtins.HostError = wire.HostError
    builtins.final_answer = finish.FINAL  # of smolagents; as a builtin, it yields to any other
    _stock_builtins.update(exit=builtins.exit, quit=builtins.quit, help=builtins.help, HostError=builtins.HostError,
                           final_answer=builtins.final_answer)
    _hide_kernel()
    events.install()
    awaits.install()
    locks.install()
    threads.install()
    output.install()
    pydantics.install()
    missing.install()
    sessionloop.install()
    sessionloop.put_in_place(_nested_run, _stock_run)
    asyncio.run = _nested_run
    initial = {
        "json": json, "re": re, "math": math, "collections": collections, "itertools": itertools,
        "statistics": statistics, "datetime": datetime, "timedelta": datetime.timedelta,
        "date": datetime.date, "time": time, "timezone": datetime.timezone, "asyncio": asyncio,
        "SubCallError": failures.SubCallError, **combinators.NAMES, "parallel_map": events.parallel_map,
    }
    _globals.update(initial, __builtins__=builtins, __doc__=None)
    finish.initial = dict(initial)
    finish.namespace = _globals
    for name, text in (("answer", '{"content": "", "ready": false}'), ("history", "[]")):
        _give(name, text)
    for name, (doc, arguments) in protocol.FUNCTIONS.items():
        if arguments != "combined":
            _offer(hostcall.HostFunction(name, doc))
    _reserve({name: getattr(finish, name) for name in ("FINAL", "FINAL_VAR", "SUBMIT", "SHOW_VARS")})
    _reserve({protocol.FIND_CODE: replies.find_code, awaits.START: awaits.start})
    _globals.update(_reserved)
    sys.modules["__main__"] = state.main = definitions.main = _main
    state.reserved, definitions.compile_snippet = _reserved, _compile_snippet
    _wrap_kernel_builtins()
    environment.begin()


def rehearse():
    """Runs once the code that every snippet runs, so the image contains it warm."""
    run("None", 0)
    run("1/0", 0)
    run("async def f(): pass\nawait f()", 0)
    for name in ("f", "_"):
        _globals.pop(name, None)
    linecache.cache.clear()
    events.discard_loop()


def _wrap_kernel_builtins():
    """Gives the kernel builtins of its own: a snippet that empties the builtins
    module must not take the kernel along."""
    own = types.ModuleType("builtins")
    own.__dict__.update(_stock_builtins)
    for module in kernel_modules.values():
        module.__dict__["__builtins__"] = own.__dict__


kernel_modules = {}  # set by the loader


def _reserve(names):
    """Binds names that stay as they are, whatever snippets do."""
    _reserved.update(names)
    finish._hidden = frozenset(_reserved) | {_ECHO}


def _offer(function):
    """Binds a host function to its name, which a snippet may take for its own use."""
    name = function.__name__
    hostcall.known[name] = function
    if _globals.get(name) is finish.initial.get(name):
        _globals[name] = function
    finish.initial[name] = function


_given = {}  # name -> JSON of a variable that the host gives


def _give(name, text):
    """Binds a variable of the host to its name, unless a snippet has taken the name."""
    if _given.get(name) == text:
        return
    value = wire.decode(text)
    if name not in _globals or not _is_own(name, _globals[name]):
        _globals[name] = value
    finish.initial[name], _given[name] = value, text


def _is_own(name, value):
    """Reports whether a snippet bound a name to this value, or changed what was there."""
    if finish.initial.get(name, _ECHO) is not value:
        return True
    try:
        return name in _given and value != wire.decode(_given[name])
    except Exception:  # of what a snippet has put into it
        return True


def _awaitable_names(tree):
    """Returns the names of functions that may be awaited, without those that snippets took."""
    names = {name for name in (*hostcall.known, *combinators.NAMES, "parallel_map")
             if _globals.get(name) is finish.initial.get(name)}
    names -= {node.name for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}
    return names | (_reserved.keys() & hostcall.known.keys())


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


_is_outdated = False  # the host has changes for which this process has not asked


def _configure():
    """Asks the host for the session's inputs and functions. An interrupt may cut it short: the
    next snippet then asks again."""
    global _is_outdated
    _is_outdated = True
    config = wire.decode(wire.text("i"))
    kept = {}
    for function in config["functions"]:
        name = function["name"]
        if name in combinators.NAMES:
            continue
        _offer(hostcall.HostFunction(name, function["doc"]))
        if name not in protocol.COMMON:
            kept[name] = hostcall.known[name]
    _reserve(kept)
    for name, text in config["variables"].items():
        _give(name, text)
    contexts.room = config["memory"] // 4
    advice.has_out = config["out"]
    if config["out"] and not getattr(_rlm, "native", False):
        outfolder.provide()
        _stock_builtins["open"] = builtins.open
    if config["packages"]:
        lazy.load("packages").install()
    inputs = [contexts.open_input(i) for i in config["inputs"]]
    names = {f"context_{n}": value for n, value in enumerate(inputs)}
    named = {i["variable"]: value for i, value in zip(config["inputs"], inputs) if "variable" in i}
    contexts.named = list(named)
    names |= named
    if inputs:
        names["context"] = inputs[0]
    _reserve(names)
    _is_outdated = False


def _settle_inputs(source):
    """Makes the long contexts real before a snippet that may need it."""
    lazy = [name for name, value in _reserved.items() if type(value) is contexts.LazyText]
    if lazy and contexts.wants_str(source):
        texts = {_reserved[name]._id: _reserved[name].real() for name in lazy}
        _reserved.update((name, texts[_reserved[name]._id]) for name in lazy)
        _globals.update(_reserved)
        _note_lazy(sorted(lazy))


_noted = set()  # the numbers of the contexts that are known to be no str


def _note_lazy(names):
    """Tells the session of the contexts that are no str here, once."""
    for name in names:
        text = _reserved[name]
        if type(text) is contexts.LazyText and text._id not in _noted:
            _noted.add(text._id)
            output.stderr.write(
                f"note: {name} is not a real str in this sandbox ({contexts.why_lazy(text)}), but a lazy text, which "
                f"behaves like one; a part of at most {contexts.LAZY:,} characters is a str\n")


_stock_run = asyncio.run


def _nested_run(main, *, debug=None, **options):
    with events._Nested():
        try:
            return _stock_run(main, debug=debug, **options)
        finally:
            asyncio.set_event_loop(None)


def run(source, flags):
    """Runs one snippet; `run` of the C runner calls this."""
    finish.done = False
    try:
        _enter(flags)
        if flags & (EXPORT | IMPORT):
            state.receive() if flags & IMPORT else state.send(*_movable())
            return OK
        value = _execute(source.removeprefix("\ufeff"), f"<snippet {flags >> 8}>")
        threads.join_all()
        if value is not None:
            _globals["_"] = value
            artefacts.show(value)
            output.echo(repr(value))
        artefacts.keep_figures()
        finish.check_answer()
        return OK
    except finish.Finished:
        return OK
    except SystemExit as error:
        _report(error, _exit_code(error))
        return EXITED
    except BaseException as error:
        if isinstance(error, SyntaxError):
            _quote_line(error, source)
        _report(error, 1)
        return RAISED
    finally:
        _leave(flags)


def _movable():
    """Returns (name, value) of the session's variables, and of what snippets have put under names
    that are no str. Comparing such a name may do anything."""
    variables, odd = [], []
    for name, value in list(_globals.items()):
        if type(name) is not str:
            odd.append((name, value))
        elif name not in _STAYING and name not in _reserved and not _is_of_module(name, value) and _is_own(name, value):
            variables.append((name, value))
    return variables, odd


_STAYING = ("__builtins__", _ECHO)
# What every module has.
_OF_MODULE = {"__name__": "__main__", "__doc__": None, "__loader__": None, "__spec__": None, "__package__": None}


def _is_of_module(name, value):
    return name in _OF_MODULE and type(value) is type(_OF_MODULE[name]) and value == _OF_MODULE[name]


def _enter(flags):
    if len(builtins.__dict__) < len(_stock_builtins):
        builtins.__dict__.update(_stock_builtins)
    if sys.modules.get("__main__") is not _main:
        sys.modules["__main__"] = _main
    if flags & RESEED:
        random.seed(wire.call(b"u") or None)
    if flags & CONFIGURE or _is_outdated:
        _configure()
    if not output.installed():
        output.install()
    if not flags & EXPORT:  # which only looks, and must go on whatever the names do when they are compared
        _globals.update(_reserved)
    parts.unfinished = parts.latest = None
    _load_ballast()


def _leave(flags):
    sys.settrace(None)
    sys.setprofile(None)
    threads.stop_all()
    if not flags & (EXPORT | IMPORT):
        advice.note_files()
    output.flush()
    if events.calls.futures:
        events.calls.drop_all()
    if flags & EXPORT:
        return
    _globals.pop(_ECHO, None)
    _globals.pop("__warningregistry__", None)  # so a line of the next snippet warns, too
    _globals.update(_reserved)
    finish.report()


def _execute(source, name):
    if type(linecache.cache) is not dict:
        linecache.cache = {}
    linecache.cache[name] = (len(source), None, _lines(source), name)
    _settle_inputs(source)
    try:
        code = _compile_snippet(source, name)
    except UnicodeEncodeError:
        raise _not_utf8(source) from None
    if code.co_flags & CO_COROUTINE:
        events.run_coroutine(eval(code, _globals))
    else:
        exec(code, _globals)
        sessionloop.go_on()
    return _globals.get(_ECHO)


def _compile_snippet(source, name):
    return _compile(source, name) if awaits.wanted(source) else compile_plain(source, name, _ECHO)


def _compile(source, name):
    """Compiles a syntax tree, in which awaits are arranged first."""
    tree = parse(source, name, "exec", PyCF_ONLY_AST | PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    awaits.arrange(tree, _awaitable_names(tree))
    return parse(awaits.keep_value(tree, _ECHO), name, "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _not_utf8(source):
    """The error for source with bytes that are not UTF-8, which came here as lone
    surrogates."""
    at = next(i for i, char in enumerate(source) if "\ud800" <= char <= "\udfff")
    line = source.count("\n", 0, at) + 1
    return SyntaxError(f"Non-UTF-8 code starting with '\\x{ord(source[at]) & 0xFF:02x}' on line {line}")


def _quote_line(error, source):
    """The compiler looks for the line of a late SyntaxError, such as a `return`
    outside a function, in a file; there is none."""
    if error.text is None and error.lineno and (error.filename or "").startswith("<snippet "):
        lines = _lines(source)
        if error.lineno <= len(lines):
            error.text = lines[error.lineno - 1]


def _lines(source):
    """Returns the lines as the compiler counts them and linecache keeps them."""
    if "\r" in source:
        source = source.replace("\r\n", "\n").replace("\r", "\n")
    lines = source.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line + "\n" for line in lines]


_BALLAST = 1 << 20
_ballast = bytearray()  # objects of the image are never freed, but what they hold is


def _load_ballast():
    """Takes memory to give up when the snippet has used up all other, if that leaves
    as much to the snippet."""
    if not _ballast:
        try:
            bytes(2 * _BALLAST)
            _ballast.__init__(_BALLAST)
        except MemoryError:
            pass


def _exit_code(error):
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return max(-0x80000000, min(0x7FFFFFFF, int(code)))
    output.stderr.write(f"{code}\n")
    return 1


def _explain(error):
    """Adds the way out: of a walk over a sequence that a list would not hold, and as advice says."""
    if not hasattr(error, "add_note"):
        return
    if isinstance(error, MemoryError) and parts.unfinished is not None and not error.args:
        try:
            parts.unfinished.check_room()
        except MemoryError as why:
            error.add_note(str(why))
    inputs = {name: value for name, value in _reserved.items() if name.startswith("context") or name in contexts.named}
    more = advice.of(error, inputs)
    if more is not None:
        error.add_note(more)


def _report(error, code):
    try:
        if isinstance(error, MemoryError):
            _ballast.clear()  # room for the report, and for the snippet after it
        _explain(error)
        kind, message = type(error).__name__, _message(error)
        trace = "" if isinstance(error, SystemExit) else format_exception(error)
    except MemoryError:
        kind, message, trace = "MemoryError", "", "MemoryError\n"
    except Exception:  # the snippet has spoilt what formats tracebacks
        kind, message = type(error).__name__, ""
        trace = f"{kind}\n"
    module = type(error).__module__
    if module not in ("builtins", "__main__"):
        kind = f"{module}.{type(error).__qualname__}"
    wire.tell("e", {"type": kind, "message": message[:_LIMIT], "traceback": _middle_out(trace), "code": code})


def _middle_out(text):
    if len(text) <= _LIMIT:
        return text
    half = _LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - _LIMIT:,} characters left out ...]\n{text[-half:]}"


def _message(error):
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"


def format_exception(error):
    """Returns CPython's text for an exception, without the kernel's frames."""
    summary = traceback.TracebackException(type(error), error, _first_own_frame(error.__traceback__))
    return "".join(summary.format())


def _first_own_frame(trace):
    """Drops what leads to the snippet: the kernel, the event loop. An exception
    without a frame of a snippet has none to show."""
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<snippet "):
        trace = trace.tb_next
    return trace


def _hide_kernel():
    """Makes all tracebacks and stacks leave out the kernel's frames, also those that a snippet formats."""
    def hide(stock):
        @functools.wraps(stock)
        def walk(start):
            steps = stock(start)
            if start is None:  # of walk_stack: the frame that takes the first step
                return steps
            return (step for step in steps if not step[0].f_code.co_filename.startswith("<rlm "))
        return walk

    for name in "walk_tb", "walk_stack", "_walk_tb_with_full_positions":  # the last from CPython 3.11 on
        if hasattr(traceback, name):
            setattr(traceback, name, hide(getattr(traceback, name)))
