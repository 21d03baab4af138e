"""Lets the standard library take a LazyText where models pass one: re, json,
csv, io. Put in place when the first LazyText appears; without one, a session
has the stock library."""

import collections
import csv
import io
import json
import re
import sys

import contexts
import patterns
import wire

LazyText = contexts.LazyText
_BATCH = 512


# --- re ---------------------------------------------------------------------

_stock = {name: getattr(re, name) for name in
          ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn", "compile")}
_translations = collections.OrderedDict()


def _compiled(pattern, flags=0):
    if isinstance(pattern, LazyPattern):
        pattern = pattern.stock
    pattern = _stock["compile"](pattern, flags)
    if not isinstance(pattern.pattern, str):
        raise TypeError("cannot use a bytes pattern on a string-like object")
    return pattern


def _translation(pattern, text):
    info = text._info
    ends = text.size > 0 and text._slice(text.size - 1, text.size) == "\n"
    key = pattern.pattern, pattern.flags, info["ascii"], info["invalid"] > 0, ends
    found = _translations.get(key)
    if found is None:
        found = _translations[key] = patterns.translate(pattern, info["ascii"], info["invalid"] > 0, ends)
        if len(_translations) > 256:
            _translations.popitem(last=False)
    return found


def _spans(pattern, text, pos=0, endpos=None, shape="{}"):
    """Yields each match's group offsets, a flat tuple as the host sends it."""
    start, end, _ = slice(pos, endpos).indices(text.size)
    end = max(start, end)
    view = text if end == text.size else LazyText(text._info, text._a, text._a + end)
    translation = _translation(pattern, view)
    if translation.exact:
        try:
            yield from _host_spans(shape.format(translation.expr), view, start)
            return
        except wire.HostError as error:
            if not str(error).startswith("regexp:"):
                raise
    if shape != "{}":
        raise AssertionError(shape)
    yield from _python_spans(pattern, translation, view, start)


def _host_spans(expr, text, start):
    position, base, batch = text._a + start, text._a, 16
    while position >= 0:
        reply = wire.decode(wire.send("tx", f"{text._id},{text._a},{text._b},{position},{batch},{expr}"))
        position, batch = reply[0], _BATCH
        for span in reply[1]:
            yield [x - base if x >= 0 else -1 for x in span] if base else span


def _flat(match, base):
    flat = []
    for group in range(match.re.groups + 1):
        low, high = match.span(group)
        flat += (low + base, high + base) if low >= 0 else (-1, -1)
    return flat


def _python_spans(pattern, translation, text, start):
    if not translation.newline:
        yield from _line_spans(pattern, translation, text, start)
    elif translation.reach is not None:
        yield from _window_spans(pattern, translation.reach, text, start)
    elif text.size - start <= contexts._WHOLE:
        base = max(0, start - 1)
        block = "".join(LazyText(text._info, text._a + base, text._b).chunks(contexts._BLOCK))
        for match in pattern.finditer(block, start - base):
            yield _flat(match, base)
    else:
        raise TypeError(
            "this pattern needs Python's own re (lookaround, backreference or \\b on text beyond ASCII) and may run "
            "over line ends without bound: search in context.chunks(size) or use a pattern that stays within a line")


def _candidates(translation, text, start):
    """Spans of whole lines that may hold a match; without a relaxed expression
    all lines, in blocks."""
    if translation.expr:
        position = text._a + start
        try:
            while position >= 0:
                reply = wire.decode(wire.send("tg", f"{text._id},{text._a},{text._b},{position},{_BATCH},{translation.expr}"))
                position = reply[0]
                for low, high in reply[1]:
                    yield low - text._a, high - text._a
            return
        except wire.HostError as error:
            if not str(error).startswith("regexp:"):
                raise
            start = max(start, position - text._a)
    while start < text.size:
        end = min(text.size, start + contexts._BLOCK)
        if end < text.size:
            cut = text.find("\n", end - 1)
            end = text.size if cut < 0 else cut + 1
        yield start, end
        start = end
    if text.size == 0 or text._slice(text.size - 1, text.size) == "\n":
        yield text.size, text.size


def _line_spans(pattern, translation, text, start):
    """Matches of a pattern that stays within a line: Python's re on whole lines,
    with one character more on either side so that anchors see what is there."""
    last = -1
    for low, high in _candidates(translation, text, start):
        low = max(low, start)
        base, end = max(0, low - 1), min(text.size, high + 1)
        block = text._slice(base, end) if end > base else ""
        for match in pattern.finditer(block, low - base):
            first = match.start() + base
            if first >= high and not (first == high == text.size):
                break
            if first == last and match.end() + base == last:
                continue
            yield _flat(match, base)
            last = match.end() + base


def _window_spans(pattern, reach, text, position):
    """Matches of a pattern whose longest match is known: windows that overlap by
    that much."""
    while True:
        base, end = max(0, position - reach), min(text.size, position + contexts._BLOCK + 2 * reach)
        limit = text.size if end == text.size else position + contexts._BLOCK
        block = text._slice(base, end) if end > base else ""
        following = limit
        for match in pattern.finditer(block, position - base):
            if match.start() + base >= limit and limit < text.size:
                break
            yield _flat(match, base)
            following = max(following, match.end() + base + (match.end() == match.start()))
        if limit >= text.size:
            return
        position = following


class _Window:
    """The part of a text around the last match that was looked at: matches that
    follow each other closely are cut from one block."""

    __slots__ = ("text", "start", "block")
    _SIZE = 1 << 16

    def __init__(self, text):
        self.text, self.start, self.block = text, 0, ""

    def cut(self, low, high):
        if not self.start <= low <= high <= self.start + len(self.block):
            if high - low > self._SIZE:
                return self.text._slice(low, high)
            end = min(self.text.size, low + self._SIZE)
            self.start, self.block = low, self.text._slice(low, end) if end > low else ""
        return self.block[low - self.start : high - self.start]


class Match:
    """What re.Match is, for a match in a LazyText."""

    __slots__ = ("re", "string", "pos", "endpos", "_spans", "_window")

    def __init__(self, pattern, text, spans, pos, endpos, window=None):
        self.re, self.string, self._spans = pattern, text, spans
        self.pos, self.endpos, self._window = pos, endpos, window

    @property
    def __class__(self):
        return re.Match

    def _number(self, group):
        if isinstance(group, str):
            number = self.re.groupindex.get(group, -1)
        else:
            number = group.__index__()
        if not 0 <= number <= self.re.groups:
            raise IndexError("no such group")
        return 2 * number

    def _text(self, at, default=None):
        low, high = self._spans[at], self._spans[at + 1]
        if low < 0:
            return default
        if self._window is not None:
            return self._window.cut(low, high)
        return self.string._slice(low, high) if high > low else ""

    def group(self, *groups):
        if len(groups) == 1:
            return self._text(self._number(groups[0]))
        if not groups:
            return self._text(0)
        return tuple(self._text(self._number(g)) for g in groups)

    def __getitem__(self, group):
        return self.group(group)

    def groups(self, default=None):
        return tuple(self._text(2 * n, default) for n in range(1, self.re.groups + 1))

    def groupdict(self, default=None):
        return {name: self._text(2 * n, default) for name, n in self.re.groupindex.items()}

    def start(self, group=0):
        return self._spans[self._number(group)]

    def end(self, group=0):
        return self._spans[self._number(group) + 1]

    def span(self, group=0):
        return self.start(group), self.end(group)

    @property
    def regs(self):
        return tuple(zip(self._spans[::2], self._spans[1::2]))

    @property
    def lastindex(self):
        best, index = -1, None
        for number in range(1, self.re.groups + 1):
            if self._spans[2 * number + 1] > best:
                best, index = self._spans[2 * number + 1], number
        return index

    @property
    def lastgroup(self):
        index = self.lastindex
        return next((name for name, n in self.re.groupindex.items() if n == index), None)

    def expand(self, template):
        return _expand(template, self)

    def __bool__(self):
        return True

    def __copy__(self):
        return self

    def __repr__(self):
        return f"<re.Match object; span={self.span()}, match={self.group()!r}>"


def _expand(template, match):
    parsed = re._parser.parse_template(template, match.re)
    if isinstance(parsed, str):
        return parsed
    out = []
    for item in parsed:
        if isinstance(item, str):
            out.append(item)
        else:
            out.append(match.group(item) or "")
    return "".join(out)


def finditer(pattern, text, flags=0, pos=0, endpos=None):
    pattern = _compiled(pattern, flags)
    start, end, _ = slice(pos, endpos).indices(text.size)
    window = _Window(text)
    return (Match(pattern, text, spans, start, end, window) for spans in _spans(pattern, text, pos, endpos))


def search(pattern, text, flags=0, pos=0, endpos=None):
    return next(finditer(pattern, text, flags, pos, endpos), None)


def findall(pattern, text, flags=0, pos=0, endpos=None):
    pattern = _compiled(pattern, flags)
    found, cut = [], _Window(text).cut
    for spans in _spans(pattern, text, pos, endpos):
        if pattern.groups == 0:
            found.append(cut(spans[0], spans[1]))
            continue
        groups = [cut(low, high) if low >= 0 else "" for low, high in zip(spans[2::2], spans[3::2])]
        found.append(groups[0] if pattern.groups == 1 else tuple(groups))
    return found


def _anchored(pattern, text, pos, endpos, whole):
    """match and fullmatch: by Python's re on the text's beginning, grown until
    the end of the block cannot matter."""
    pattern = _compiled(pattern)
    start, end, _ = slice(pos, endpos).indices(text.size)
    end = max(start, end)
    base, length = max(0, start - 1), contexts._BLOCK
    while True:
        stop = min(end, start + length)
        block = text._slice(base, stop) if stop > base else ""
        match = (pattern.fullmatch if whole else pattern.match)(block, start - base)
        if stop == end:
            return Match(pattern, text, _flat(match, base), start, end) if match else None
        if not whole and match is not None and match.end() + base + 4096 < stop:
            return Match(pattern, text, _flat(match, base), start, end)
        if match is None and not whole and pattern.match(block[: len(block) // 2], start - base) is None:
            return None
        if length > contexts._WHOLE:
            raise contexts._too_long("an anchored match", text)
        length *= 4


def match(pattern, text, flags=0, pos=0, endpos=None):
    return _anchored(_compiled(pattern, flags), text, pos, endpos, False)


def fullmatch(pattern, text, flags=0, pos=0, endpos=None):
    return _anchored(_compiled(pattern, flags), text, pos, endpos, True)


def split(pattern, text, maxsplit=0, flags=0):
    pattern = _compiled(pattern, flags)
    parts, position = [], 0
    for match in finditer(pattern, text):
        parts.append(text._part(position, match.start()))
        parts.extend(match.groups())
        position = match.end()
        if maxsplit and len(parts) >= maxsplit * (pattern.groups + 1):
            break
    parts.append(text._part(position, text.size))
    return parts


def subn(pattern, repl, text, count=0, flags=0):
    pattern = _compiled(pattern, flags)
    if text.size > contexts._WHOLE:
        raise contexts._too_long("re.sub", text)
    return _stock["subn"](pattern, repl, text.text(), count=count)


def sub(pattern, repl, text, count=0, flags=0):
    return subn(pattern, repl, text, count, flags)[0]


class LazyPattern:
    """A compiled pattern that also takes a LazyText. isinstance says re.Pattern."""

    __slots__ = ("stock", "__weakref__")

    def __init__(self, stock):
        self.stock = stock

    @property
    def __class__(self):
        return re.Pattern

    def __getattr__(self, name):
        return getattr(self.stock, name)

    def __eq__(self, other):
        return self.stock == (other.stock if type(other) is LazyPattern else other)

    def __hash__(self):
        return hash(self.stock)

    def __repr__(self):
        return repr(self.stock)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return re._compile, (self.stock.pattern, self.stock.flags)

    def search(self, string, pos=0, endpos=sys.maxsize):
        if type(string) is LazyText:
            return search(self.stock, string, 0, pos, _end(endpos))
        return self.stock.search(string, pos, endpos)

    def match(self, string, pos=0, endpos=sys.maxsize):
        if type(string) is LazyText:
            return match(self.stock, string, 0, pos, _end(endpos))
        return self.stock.match(string, pos, endpos)

    def fullmatch(self, string, pos=0, endpos=sys.maxsize):
        if type(string) is LazyText:
            return fullmatch(self.stock, string, 0, pos, _end(endpos))
        return self.stock.fullmatch(string, pos, endpos)

    def findall(self, string, pos=0, endpos=sys.maxsize):
        if type(string) is LazyText:
            return findall(self.stock, string, 0, pos, _end(endpos))
        return self.stock.findall(string, pos, endpos)

    def finditer(self, string, pos=0, endpos=sys.maxsize):
        if type(string) is LazyText:
            return finditer(self.stock, string, 0, pos, _end(endpos))
        return self.stock.finditer(string, pos, endpos)

    def split(self, string, maxsplit=0):
        if type(string) is LazyText:
            return split(self.stock, string, maxsplit)
        return self.stock.split(string, maxsplit)

    def sub(self, repl, string, count=0):
        if type(string) is LazyText:
            return sub(self.stock, repl, string, count)
        return self.stock.sub(repl, string, count)

    def subn(self, repl, string, count=0):
        if type(string) is LazyText:
            return subn(self.stock, repl, string, count)
        return self.stock.subn(repl, string, count)


def _end(endpos):
    return None if endpos == sys.maxsize else endpos


def _compile(pattern, flags=0):
    compiled = _stock["compile"](pattern.stock if type(pattern) is LazyPattern else pattern, flags)
    # The standard library gets the stock object: only snippets meet a LazyText.
    if not isinstance(compiled.pattern, str) or sys._getframe(1).f_code.co_filename.startswith("<frozen "):
        return compiled
    return LazyPattern(compiled)


def _dispatching(stock, lazy, at):
    def function(*args, **kwargs):
        if len(args) > at:
            if type(args[at]) is LazyText:
                return lazy(*args, **kwargs)
        elif type(kwargs.get("string")) is LazyText:
            text = kwargs.pop("string")
            return lazy(*args, text, **kwargs)
        if args and type(args[0]) is LazyPattern:
            args = (args[0].stock, *args[1:])
        return stock(*args, **kwargs)

    function.__name__ = function.__qualname__ = stock.__name__
    function.__doc__ = stock.__doc__
    function.__module__ = "re"
    return function


def _install_re():
    for name, lazy in (("search", search), ("match", match), ("fullmatch", fullmatch), ("findall", findall),
                       ("finditer", finditer), ("split", split)):
        setattr(re, name, _dispatching(_stock[name], lazy, 1))
    for name, lazy in (("sub", sub), ("subn", subn)):
        setattr(re, name, _dispatching(_stock[name], lazy, 2))
    _compile.__name__ = _compile.__qualname__ = "compile"
    _compile.__doc__ = _stock["compile"].__doc__
    re.compile = _compile


# --- json, csv, io ------------------------------------------------------------


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
        if type(initial_value) is LazyText:
            return TextFile(initial_value)
        return _stock_stringio(initial_value, newline) if cls is StringIO else super().__call__(initial_value, newline)

    def __instancecheck__(cls, instance):
        return isinstance(instance, (_stock_stringio, TextFile)) if cls is StringIO else super().__instancecheck__(instance)


_stock_stringio = io.StringIO


class StringIO(io.StringIO, metaclass=_StringIOMeta):
    __module__ = "io"


def _whole(text, what, instead):
    if text.size > contexts._WHOLE:
        raise MemoryError(f"{what} would bring {text.size:,} characters into memory: {instead}")
    return text.text()


def _install_json():
    stock_loads = json.loads

    def loads(s, **kwargs):
        if type(s) is LazyText:
            s = _whole(s, "json.loads", "for JSON Lines use `for line in context: row = json.loads(line)`; for one "
                                        "large document find the parts by context.find or context.finditer and "
                                        "load those")
        return stock_loads(s, **kwargs)

    loads.__doc__ = stock_loads.__doc__
    json.loads = loads


def _install_csv():
    stock_reader = csv.reader

    def reader(lines, *args, **kwargs):
        return stock_reader(lines.open() if type(lines) is LazyText else lines, *args, **kwargs)

    reader.__doc__, reader.__module__ = stock_reader.__doc__, "_csv"
    csv.reader = reader


def install():
    """Replaces what snippets use of re, json, csv and io."""
    _install_re()
    _install_json()
    _install_csv()
    io.StringIO = StringIO
