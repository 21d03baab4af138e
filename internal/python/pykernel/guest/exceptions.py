"""Exceptions and tracebacks that move. None of their own code runs a second time."""

import ast
import sys
import types

import definitions
import patches

_LINKS = ("__cause__", "__context__", "__suppress_context__", "__traceback__")


def reduce_exception(error):
    """An exception is made without its __init__, which has run once already."""
    links = {name: value for name in _LINKS if (value := getattr(error, name))}
    kind = type(error)
    if definitions.overrides(kind, "__reduce__", "__reduce_ex__", "__setstate__", "__getstate__"):
        made = error.__reduce_ex__(5)
        return made[0], made[1], (links, {}, made[2] if len(made) > 2 else None), None, None, set_exception
    fields = {}
    for base in kind.__mro__:
        for name, field in base.__dict__.items():
            if type(field) in (types.MemberDescriptorType, types.GetSetDescriptorType) and name not in _MADE:
                value = getattr(error, name, None)
                if value is not None:
                    fields.setdefault(name, value)
    own = dict(error.__dict__)
    return make_exception, (kind, error.args), (links, fields, own), None, None, set_exception


_MADE = frozenset(_LINKS) | {"args", "__dict__", "__weakref__", "exceptions", "message"}


def _stock(kind):
    """Returns the nearest base that is built in."""
    return next(base for base in kind.__mro__ if base.__module__ == "builtins")


def make_exception(kind, args):
    stock = _stock(kind)
    if issubclass(stock, BaseExceptionGroup if sys.version_info >= (3, 11) else ()):
        return stock.__new__(kind, *args[:2])
    error = stock.__new__(kind)
    error.args = args
    return error


def set_exception(error, state):
    links, fields, own = state
    for name, value in fields.items():
        try:
            setattr(error, name, value)
        except (AttributeError, TypeError):
            pass  # it is read only: the exception's arguments give it
    if own is not None:
        error.__setstate__(own)
    for name, value in links.items():
        setattr(error, name, value)


def reduce_traceback(trace):
    if not patches.mentioned().isdisjoint(_READ_FRAMES):
        definitions.lost("frame", "the variables of the frames of a traceback stay with their interpreter")
    entries = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places = list(code.co_positions()) if hasattr(code, "co_positions") else []
        at = trace.tb_lasti // 2
        place = places[at] if 0 <= at < len(places) else (None,) * 4
        entries.append((code.co_filename, code.co_name, getattr(code, "co_qualname", None), trace.tb_lineno, place))
        trace = trace.tb_next
    return make_traceback, (entries,)


# Words of snippets that look at the variables of frames.
_READ_FRAMES = ("f_locals", "capture_locals", "post_mortem", "getinnerframes")


def make_traceback(entries):
    """Makes frames that stand where the entries say. They have no variables."""
    trace = None
    for filename, name, qualname, line, place in reversed(entries):
        frame = _make_frame(filename, name, qualname, line, place)
        trace = types.TracebackType(trace, frame, frame.f_lasti, line)
    return trace


def _make_frame(filename, name, qualname, line, place):
    """Returns the frame of a generator that waits, because any other refers to the frames
    that called it. It ends with the generator, which therefore refers to itself."""
    tree = ast.parse("def _(self):\n    yield")
    first, last, start, end = place
    exact = first == line and start is not None
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno, node.end_lineno = line, max(line, last or line) if exact else line
            node.col_offset, node.end_col_offset = (start, end) if exact else (0, 0)
    code = next(c for c in compile(tree, filename, "exec", dont_inherit=True).co_consts if type(c) is types.CodeType)
    named = {"co_name": name}
    if hasattr(code, "co_qualname"):
        named["co_qualname"] = qualname or name
    own = []
    generator = types.FunctionType(code.replace(**named), {"__name__": "__main__"})(own)
    own.append(generator)
    next(generator)
    return generator.gi_frame


definitions.SPECIAL[types.TracebackType] = reduce_traceback

NAMED = make_exception, set_exception, make_traceback
