"""Lets the standard library take a LazyText where models pass one: re, json,
io. Put in place when the first LazyText appears; without one, a session
has the stock library."""

import io
import json
from operator import length_hint

import contexts
import environment
import lazy
import parts
import regexes

LazyText = contexts.LazyText


class TextFile(io.TextIOBase):
    """A LazyText as a text file opened with newline=''. Offsets are characters."""

    def __init__(self, text):
        self._text, self._at = text, 0
        self._block, self._start = "", 0  # what was read last, and where it begins

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self._at

    def seek(self, offset, whence=0):
        base = {0: 0, 1: self._at, 2: self._text.size}[whence]
        if base + offset < 0:
            raise ValueError(f"negative seek position {base + offset}")
        self._at = base + offset
        return self._at

    def read(self, size=-1):
        end = self._text.size if size is None or size < 0 else min(self._text.size, self._at + size)
        if end - self._at > contexts._WHOLE:
            raise contexts._too_long("read()", self._text)
        data = self._text._slice(self._at, end) if end > self._at else ""
        self._at += len(data)
        return data

    def readline(self, size=-1):
        line = ""
        while self._at < self._text.size:
            offset = self._at - self._start
            if not 0 <= offset < len(self._block):
                self._start = self._at
                self._block = self._text._slice(self._at, min(self._text.size, self._at + contexts._BLOCK))
                offset = 0
            cut = self._block.find("\n", offset) + 1
            line += self._block[offset : cut or None]
            self._at = self._start + (cut or len(self._block))
            if cut:
                break
        if size is not None and 0 <= size < len(line):
            self._at -= len(line) - size
            line = line[:size]
        return line

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def getvalue(self):
        return str(self._text)


class _StringIOMeta(type(io.StringIO)):
    def __call__(cls, initial_value="", newline="\n"):
        if type(initial_value) in contexts.LONG and not (
            isinstance(initial_value, str) and 4 * len(initial_value) <= contexts.room
        ):
            return TextFile(initial_value)
        return _stock_stringio(initial_value, newline) if cls is StringIO else super().__call__(initial_value, newline)

    def __instancecheck__(cls, instance):
        return isinstance(instance, (_stock_stringio, TextFile)) if cls is StringIO else super().__instancecheck__(instance)


_stock_stringio = io.StringIO
ABSENT = parts.ABSENT


class StringIO(io.StringIO, metaclass=_StringIOMeta):
    __module__ = "io"


def _whole(text, what, instead):
    if text.size > contexts._WHOLE:
        raise MemoryError(f"{what} would bring {text.size:,} characters into memory: {instead}")
    return text.text()


_SOME = 16  # lines that a loop loads before the host loads further ones ahead


def _install_json():
    stock_loads = json.loads
    known, values, turn = (), (), 0  # lines, what the host made of them, and how many the loop has loaded
    ahead, loaded = None, 0  # the further lines, and how many of these Python has loaded

    def load_ahead(s):
        """Returns what the host made of the line that a loop has just read, ABSENT if nothing."""
        nonlocal known, values, turn, ahead, loaded
        lines, rest, text, span = parts.latest
        at = len(lines) - length_hint(rest) - 1
        if at < 0 or lines[at] is not s:
            return ABSENT
        if lines is not known:
            # A loop that loads few of its lines gains nothing.
            ahead = ahead if 2 * turn > len(values) > 0 and not contexts.is_alone() else None
            known, values, turn, loaded = lines, ahead.take(lines, text, span) if ahead else (), 0, 0
        if at < len(values):
            value, turn = values[at] if at >= turn else ABSENT, at + 1
            return value
        loaded += 1
        if loaded == _SOME and at < 2 * _SOME and not contexts.is_alone():
            ahead = lazy.load("tables").Ahead(text, span[0])
            values, turn = ahead.take(lines, text, span), at + 1
        return ABSENT

    def loads(s, **kwargs):
        nonlocal turn
        if turn < len(values) and known[turn] is s and not kwargs:
            value = values[turn]
            turn += 1
            if value is not ABSENT:
                return value
        elif type(s) is str and parts.latest is not None and not kwargs:
            value = load_ahead(s)
            if value is not ABSENT:
                return value
        elif type(s) is LazyText:
            s = _whole(s, "json.loads", "for JSON Lines use `for line in context.lines(): row = json.loads(line)`; for one "
                                        "large document find the parts by context.find or context.finditer and "
                                        "load those")
        return stock_loads(s, **kwargs)

    loads.__doc__ = stock_loads.__doc__
    json.loads = loads
    stock_default = json.JSONEncoder.default

    def default(self, o):
        return o.__rlm_list__() if hasattr(type(o), "__rlm_list__") else stock_default(self, o)

    default.__doc__ = stock_default.__doc__
    json.JSONEncoder.default = default


def install():
    """Replaces the functions of re, json and io that snippets use."""
    regexes.install()
    _install_json()
    io.StringIO = StringIO
    for name in ("re", "json", "io"):
        environment.keep(name)
