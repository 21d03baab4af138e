"""re over a LazyText: what its functions and its patterns' methods give for a str."""

import functools
import itertools
import operator
import re
import sys
import types
import typing
import weakref

import contexts
import matching
import patterns

LONG = contexts.LONG
_StockPattern = re.Pattern
_stock = {name: getattr(re, name) for name in
          ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn", "compile")}


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

    __slots__ = ("_re", "string", "pos", "endpos", "_spans", "_window")

    def __init__(self, pattern, text, spans, pos, endpos, window=None):
        self._re, self.string, self._spans = pattern, text, spans
        self.pos, self.endpos, self._window = pos, endpos, window

    @property
    def __class__(self):
        return re.Match

    @property
    def re(self):
        return _lazy(self._re)

    def _number(self, group):
        if isinstance(group, str):
            number = self._re.groupindex.get(group, -1)
        else:
            number = group.__index__()
        if not 0 <= number <= self._re.groups:
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
        return tuple(self._text(2 * n, default) for n in range(1, self._re.groups + 1))

    def groupdict(self, default=None):
        return {name: self._text(2 * n, default) for name, n in self._re.groupindex.items()}

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
        for number in range(1, self._re.groups + 1):
            if self._spans[2 * number + 1] > best:
                best, index = self._spans[2 * number + 1], number
        return index

    @property
    def lastgroup(self):
        index = self.lastindex
        return next((name for name, n in self._re.groupindex.items() if n == index), None)

    def expand(self, template):
        return _expand(template, self)

    def __bool__(self):
        return True

    def __copy__(self):
        return self

    def __repr__(self):
        return f"<re.Match object; span={self.span()}, match={self.group()!r}>"


def _expand(template, match):
    parsed = patterns.parser.parse_template(template, match._re)
    if isinstance(parsed, str):
        return parsed
    if isinstance(parsed, tuple):  # CPython before 3.12
        groups, out = parsed[0], list(parsed[1])
        for index, group in groups:
            out[index] = match.group(group) or ""
        return "".join(out)
    out = []
    for item in parsed:
        if isinstance(item, str):
            out.append(item)
        else:
            out.append(match.group(item) or "")
    return "".join(out)


def finditer(pattern, text, flags=0, pos=0, endpos=None):
    pattern = matching.compiled(pattern, flags)
    start, end = matching.bounds(text, pos, endpos)
    if (dense := _dense(pattern, text)) is not None:
        return pattern.finditer(dense, start, end)
    window = _Window(text)
    return (Match(pattern, text, spans, start, end, window) for spans in matching.spans(pattern, text, start, end))


_SAMPLE = 1 << 14  # characters


def _dense(pattern, text):
    """Returns the text as a real str if a pattern matches so often that a search here takes less
    time than the host's answers, or if there is no host. Otherwise, and where the text cannot be a
    str, it returns None."""
    if contexts.is_alone() and isinstance(text, str):
        return text
    if contexts.realtexts is None or len(list(itertools.islice(pattern.finditer(text[:_SAMPLE]), 64))) < 64:
        return None
    real = text.real()
    return real if isinstance(real, str) else None


def search(pattern, text, flags=0, pos=0, endpos=None):
    return next(finditer(pattern, text, flags, pos, endpos), None)


def findall(pattern, text, flags=0, pos=0, endpos=None):
    pattern = matching.compiled(pattern, flags)
    if (dense := _dense(pattern, text)) is not None:
        return pattern.findall(dense, *matching.bounds(text, pos, endpos))
    found, cut = [], _Window(text).cut
    for spans in matching.spans(pattern, text, pos, endpos):
        if pattern.groups == 0:
            found.append(cut(spans[0], spans[1]))
            continue
        groups = [cut(low, high) if low >= 0 else "" for low, high in zip(spans[2::2], spans[3::2])]
        found.append(groups[0] if pattern.groups == 1 else tuple(groups))
    return found


def _anchored(pattern, text, pos, endpos, whole):
    start, end = matching.bounds(text, pos, endpos)
    spans = matching.anchored(pattern, text, start, end, whole)
    return None if spans is None else Match(pattern, text, spans, start, end)


def match(pattern, text, flags=0, pos=0, endpos=None):
    return _anchored(matching.compiled(pattern, flags), text, pos, endpos, False)


def fullmatch(pattern, text, flags=0, pos=0, endpos=None):
    return _anchored(matching.compiled(pattern, flags), text, pos, endpos, True)


def split(pattern, text, maxsplit=0, flags=0):
    pattern = matching.compiled(pattern, flags)
    if (dense := _dense(pattern, text)) is not None:
        return pattern.split(dense, maxsplit)
    parts, position = [], 0
    for match in finditer(pattern, text) if maxsplit >= 0 else ():
        parts.append(text._part(position, match.start()))
        parts.extend(match.groups())
        position = match.end()
        if maxsplit and len(parts) >= maxsplit * (pattern.groups + 1):
            break
    parts.append(text._part(position, text.size))
    return parts


def subn(pattern, repl, text, count=0, flags=0):
    pattern = matching.compiled(pattern, flags)
    return _stock["subn"](pattern, repl, text.text(), count=count)


def sub(pattern, repl, text, count=0, flags=0):
    return subn(pattern, repl, text, count, flags)[0]


class _PatternType(type):
    """Makes Pattern what re.Pattern is: closed, and the type of all patterns, those
    that the standard library has compiled included."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, _StockPattern)

    def __subclasscheck__(cls, subclass):
        return subclass is cls or issubclass(subclass, _StockPattern)

    def __call__(cls, *args, **kwargs):
        raise TypeError("cannot create 're.Pattern' instances")

    def __setattr__(cls, name, value):
        raise TypeError(f"cannot set {name!r} attribute of immutable type 're.Pattern'")

    def __getattr__(cls, name):
        return getattr(_StockPattern, name)


class Pattern(metaclass=_PatternType):
    """A compiled pattern that also takes a LazyText; re.Pattern to snippets."""

    __module__ = "re"
    __slots__ = ("stock", "__weakref__")
    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, stock):
        self.stock = stock

    def __init_subclass__(cls):
        raise TypeError("type 're.Pattern' is not an acceptable base type")

    @property
    def __class__(self):
        return _StockPattern  # for those who took re.Pattern before it was ours

    def __getattr__(self, name):
        return getattr(self.stock, name)

    def __eq__(self, other):
        return self.stock == (other.stock if type(other) is Pattern else other)

    def __hash__(self):
        return hash(self.stock)

    def __repr__(self):
        return repr(self.stock)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return re.compile, (self.stock.pattern, self.stock.flags)

    def search(self, string, pos=0, endpos=sys.maxsize):
        if type(string) in LONG:
            return search(self.stock, string, 0, pos, _end(endpos))
        return self.stock.search(string, pos, endpos)

    def match(self, string, pos=0, endpos=sys.maxsize):
        if type(string) in LONG:
            return match(self.stock, string, 0, pos, _end(endpos))
        return self.stock.match(string, pos, endpos)

    def fullmatch(self, string, pos=0, endpos=sys.maxsize):
        if type(string) in LONG:
            return fullmatch(self.stock, string, 0, pos, _end(endpos))
        return self.stock.fullmatch(string, pos, endpos)

    def findall(self, string, pos=0, endpos=sys.maxsize):
        if type(string) in LONG:
            return findall(self.stock, string, 0, pos, _end(endpos))
        return self.stock.findall(string, pos, endpos)

    def finditer(self, string, pos=0, endpos=sys.maxsize):
        if type(string) in LONG:
            return finditer(self.stock, string, 0, pos, _end(endpos))
        return self.stock.finditer(string, pos, endpos)

    def split(self, string, maxsplit=0):
        if type(string) in LONG:
            return split(self.stock, string, maxsplit)
        return self.stock.split(string, maxsplit)

    def sub(self, repl, string, count=0):
        if type(string) in LONG:
            return sub(self.stock, repl, string, count)
        return self.stock.sub(repl, string, count)

    def subn(self, repl, string, count=0):
        if type(string) in LONG:
            return subn(self.stock, repl, string, count)
        return self.stock.subn(repl, string, count)


def _end(endpos):
    return None if endpos == sys.maxsize else operator.index(endpos)


_patterns = weakref.WeakValueDictionary()  # by the stock pattern's id, which lives as long


def _lazy(stock):
    """The one Pattern of a stock pattern: re's own cache, and re.purge, decide
    whether two patterns are the same object."""
    found = _patterns.get(id(stock))
    if found is None:
        found = _patterns[id(stock)] = type.__call__(Pattern, stock)
    return found


@functools.wraps(re.compile)
def _compile(pattern, flags=0):
    compiled = _stock["compile"](pattern.stock if type(pattern) is Pattern else pattern, flags)
    # The standard library gets the stock object: only snippets meet a LazyText.
    if sys._getframe(1).f_code.co_filename.startswith("<frozen "):
        return compiled
    return _lazy(compiled)


def _dispatching(stock, lazy, at):
    @functools.wraps(stock)
    def function(*args, **kwargs):
        if len(args) > at:
            if type(args[at]) in LONG:
                return lazy(*args, **kwargs)
        elif type(kwargs.get("string")) in LONG:
            return lazy(*args, text=kwargs.pop("string"), **kwargs)
        if args and type(args[0]) is Pattern:
            args = (args[0].stock, *args[1:])
        return stock(*args, **kwargs)

    return function


def install():
    """Replaces the functions of re that snippets use."""
    for name, lazy in (("search", search), ("match", match), ("fullmatch", fullmatch), ("findall", findall),
                       ("finditer", finditer), ("split", split)):
        setattr(re, name, _dispatching(_stock[name], lazy, 1))
    for name, lazy in (("sub", sub), ("subn", subn)):
        setattr(re, name, _dispatching(_stock[name], lazy, 2))
    re.compile = _compile
    re.Pattern = typing.Pattern.__origin__ = Pattern
