"""The session's inputs: plain values, lazy texts, directories.

A text above LAZY characters is not brought into the guest. A LazyText answers
as the str would, asking the host for what it needs; the guest's memory stays
the same whatever the text's size.
"""

import collections.abc
import io
import re
import sys

import _rlm
import binaries
import output
import wire
from parts import Chunks, Parts, Sections, cut_lines

LAZY = 8 << 20  # characters; longer slices stay lazy, too
_BLOCK = 1 << 20
_STREAM = 1 << 18  # characters read ahead by an iteration
_WHOLE = 64 << 20  # no more is ever turned into a str by itself

is_alone = getattr(_rlm, "forked", lambda: False)  # in a process that a snippet forked: there is no host
room = 64 << 20  # bytes that the parts of a text may take, set from the limit of memory

_installed = False


def open_input(info):
    """Returns the value of one input, from the host's description."""
    kind = info["kind"]
    if kind == "value":
        return wire.decode(wire.text(f"j{info['id']}"))
    if kind == "dir":
        return Directory(info)
    return open_text(info)


def open_text(info):
    """Returns a str, a LazyText if the text is too long, or bytes if the file is not text."""
    if info.get("binary"):
        return binaries.open_binary(info)
    if info["chars"] > LAZY or info["bytes"] > LAZY:
        _install()
        return LazyText(info, 0, info["chars"])
    if info["type"] == "csv":
        lazy.load("tables").install()
    return _short(info)


def _short(info):
    text = ShortText(wire.text(f"ts{info['id']},0,{info['chars']}"))
    text._info = info
    return text


def short_again(number):
    """Returns the short text that had this number before the session moved."""
    return _short(wire.decode(wire.text(f"ti{number}")))


def again(number, start, end):
    """Returns the part of a text that had this number before the session moved."""
    info = wire.decode(wire.text(f"ti{number}"))
    _install()
    return LazyText(info, start, end).real()


# Anything but what the host answers without writing the characters into a file first. Who lists
# the variables meets the contexts without their names. A forked process cannot ask the host.
_USE = (
    r"(?<!\w)(?:(?:context(?:_\d+)?%s)(?!\w)(?!\.(?:count|find|rfind|index|rindex|startswith|endswith|size|nbytes|name|path|"
    r"type|encoding|ascii|invalid_bytes|chunks|lines|json_lines|table|tables|parts|search|findall|finditer|bytes)\b)"
    r"|(?:globals|locals|vars|eval|exec|__main__|f_globals|fork|multiprocessing|ProcessPoolExecutor)(?!\w))"
)


named = []  # the further names of contexts


def wants_str(source):
    """Reports whether a snippet may do more with a context than ask such questions."""
    return re.search(_USE % "".join(f"|{name}" for name in named), source) is not None


def _install():
    global _installed, realtexts, _why
    if not _installed:
        _installed = True
        adapters.install()
        lazy.load("tables").install()
        lazy.load("tallies").install()
        if realtexts is None:
            try:
                realtexts = lazy.load("realtexts")
            except Exception as error:  # no ctypes, or an unknown CPython
                _why = str(error)


def why_lazy(text):
    """Says why a text that a snippet wanted as a str is none."""
    return _why or realtexts.refused.get(text._id, "")


realtexts, _why = None, ""  # the module, and why it cannot be loaded


class Directory(collections.abc.Mapping):
    """A directory: relative path -> text, opened when asked for."""

    path = None  # no folder of the sandbox has these files

    def __init__(self, info):
        self._id = info["id"]
        self.name = info["name"]
        self._sizes = None
        self._open = {}
        self._unreadable = set()  # paths that a note has named

    def _load(self):
        if self._sizes is None:
            self._sizes = dict(wire.decode(wire.text(f"dl{self._id}")))
        return self._sizes

    def __getitem__(self, path):
        if isinstance(path, slice):
            raise TypeError("a directory maps paths to texts, of which parts can be taken: context[path][a:b]")
        if path not in self._load():
            raise KeyError(path)
        text = self._open.get(path)
        if text is None:
            asked = f"do{self._id},{path}".encode("utf-8", "surrogateescape")
            text = open_text(wire.decode(wire.text(asked)))
            if isinstance(text, LazyText):
                text = self._open[path] = text.real()
            elif isinstance(text, binaries.LongBytes):
                self._open[path] = text
        return text

    def __iter__(self):
        return iter(self._load())

    def __len__(self):
        return len(self._load())

    def __contains__(self, path):
        return path in self._load()

    def items(self):
        """The paths and texts, without the files that cannot be read: a note on stderr names each."""
        return _Items(self)

    def values(self):
        """The texts, as items() has them."""
        return _Values(self)

    def _readable(self):
        for path in self:
            try:
                text = self[path]
            except wire.HostError as error:
                if path not in self._unreadable:
                    self._unreadable.add(path)
                    output.stderr.write(f"note: {path} is left out, because it cannot be read: {error}\n")
            else:
                yield path, text

    def sizes(self):
        """Path -> size in bytes, without opening a file."""
        return dict(self._load())

    def __getattr__(self, name):
        if not name.startswith("_") and hasattr(str, name):
            raise AttributeError(f"a directory maps paths to texts, of which each has {name!r}: context[path].{name}, "
                                 "or for path, text in context.items()")
        raise AttributeError(f"'Directory' object has no attribute {name!r}")

    def __repr__(self):
        return f"<Directory {self.name!r}: {len(self):,} files>"


class _Items(collections.abc.ItemsView):
    def __iter__(self):
        return self._mapping._readable()


class _Values(collections.abc.ValuesView):
    def __iter__(self):
        return (text for _, text in self._mapping._readable())


def _too_long(what, text):
    return MemoryError(
        f"{what} would bring {text.size:,} characters into memory. Take a part: context[a:b], "
        "context.chunks(size), context.lines(a, b); or search: context.findall(pattern), context.find(s)."
    )


class LazyText:
    """A read-only text of any size that answers as a str does.

    Indexing, slicing, `in`, find, count, split, splitlines, strip and the like
    give what the str would give. Beyond that:

      size                      length in characters; len() ends at 2,147,483,647
      lines(), lines(a, b)      lines without their ends, lazily, or those from a to b
      chunks(size, overlap=0)   consecutive parts
      search findall finditer   as re's, with the pattern first
      open()                    a file-like object for csv.reader and the like
      json_lines(), table()     the rows of JSON Lines, CSV or a sheet
      tables                    the names of the sheets
      parts                     the pages, sheets, messages and the like of a document
      parts[0].image()          a picture of a page of a PDF
      bytes, bytes(a, b)        the bytes of the file, or a part of them
      text()                    the whole as a str, if it fits
      path                      a file with the same bytes, where the sandbox has one, else None

    Long slices are LazyText again.
    """

    __slots__ = ("_info", "_id", "_a", "_b")

    def __init__(self, info, start, end):
        self._info, self._id, self._a, self._b = info, info["id"], start, end

    # What it is.

    @property
    def size(self):
        return self._b - self._a

    @property
    def nbytes(self):
        """Size in bytes of the whole file."""
        return self._info["raw"]

    @property
    def name(self):
        return self._info["name"]

    @property
    def path(self):
        """The file to read it from by other means, None if there is none."""
        whole = self._a == 0 and self._b == self._info["chars"]
        return self._info.get("path") if whole else None

    @property
    def type(self):
        """text, json, jsonl, csv, xml, html, code or binary."""
        return self._info["type"]

    @property
    def ascii(self):
        return self._info["ascii"]

    @property
    def invalid_bytes(self):
        """Bytes that are not UTF-8; they appear as U+DC80 to U+DCFF."""
        return self._info["invalid"]

    def __len__(self):
        if self.size > sys.maxsize:
            raise OverflowError(f"the context has {self.size:,} characters, more than len() can say: use context.size")
        return self.size

    def __bool__(self):
        return self._b > self._a

    def __repr__(self):
        return f"<LazyText {self.name!r}: {self.size:,} characters of {self.type}, starts {self._slice(0, 60)!r}>"

    def __hash__(self):
        return hash((self._id, self._a, self._b))

    def __eq__(self, other):
        if isinstance(other, LazyText):
            if (self._id, self._a, self._b) == (other._id, other._a, other._b):
                return True
            if self.size != other.size:
                return False
            return all(x == y for x, y in zip(self.chunks(_BLOCK), other.chunks(_BLOCK)))
        if isinstance(other, str):
            return self.size == len(other) and self.startswith(other)
        return NotImplemented

    def __rlm_ref__(self):
        return {"__rlm_text__": [self._id, self._a, self._b]}

    def real(self):
        """Returns the text as a real str if the host can map it, else itself."""
        mapped = realtexts and realtexts.open(self._info)
        return mapped[self._a : self._b] if mapped is not None else self

    # Taking parts.

    def _slice(self, start, end):
        """The characters [start, end) as a str; offsets are within bounds."""
        return wire.text(f"ts{self._id},{self._a + start},{self._a + min(end, self.size)}")

    def _part(self, start, end):
        if end - start > LAZY:
            return LazyText(self._info, self._a + start, self._a + end).real()
        return self._slice(start, end) if end > start else ""

    def __getitem__(self, key):
        if isinstance(key, slice):
            start, end, step = key.indices(self.size)
            if step == 1:
                return self._part(start, max(start, end))
            return self._stride(start, end, step)
        try:
            index = key.__index__()
        except AttributeError:
            raise TypeError(f"string indices must be integers, not {type(key).__name__!r}") from None
        if index < 0:
            index += self.size
        if not 0 <= index < self.size:
            raise IndexError("string index out of range")
        return self._slice(index, index + 1)

    def _stride(self, start, end, step):
        count = len(range(start, end, step)) if abs(end - start) < sys.maxsize else _WHOLE + 1
        if count > _WHOLE:
            raise _too_long("a slice with a step", self)
        if count == 0:
            return ""
        low, high = (start, end) if step > 0 else (start + (count - 1) * step, start + 1)
        parts = []
        position = low
        while position < high:
            block = self._slice(position, min(high, position + _BLOCK))
            parts.append(block[::abs(step)])
            position += -(-len(block) // abs(step)) * abs(step)
        whole = "".join(parts)
        return whole if step > 0 else whole[::-1]

    def chunks(self, size, overlap=0):
        """Consecutive parts of size characters, each sharing overlap with the next."""
        return Chunks(self, size, overlap)

    @property
    def bytes(self):
        """The bytes of the whole file, before they were decoded: bytes[a:b], or bytes(a, b)."""
        return binaries.open_binary(self._info)

    @property
    def encoding(self):
        """The encoding of the bytes."""
        return self._info["encoding"]

    def text(self):
        """The whole as a str, if it fits into memory."""
        real = self.real()
        if real is not self:
            return real
        if self.size > _WHOLE:
            raise _too_long("text()", self)
        return "".join(self.chunks(_BLOCK))

    def __str__(self):
        return self.text()

    def __format__(self, spec):
        return format(str(self), spec)

    def open(self):
        """A file-like object over the text: read, readline, seek, iteration."""
        return adapters.TextFile(self)

    # Searching.

    def _span(self, start, end):
        """Returns slice bounds as str's methods take them, or None if nothing can match."""
        if start is not None and start > self.size:
            return None
        a, b, _ = slice(start, end).indices(self.size)
        return (self._a + a, self._a + b) if a <= b else None

    def _find(self, op, sub, start, end):
        if not isinstance(sub, str):
            raise TypeError(f"must be str, not {type(sub).__name__}")
        span = self._span(start, end)
        if span is None:
            return -1
        try:
            needle = sub.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return -1  # no decoded text has other lone surrogates
        return int(wire.text(b"t%b%d,%d,%d," % (op, self._id, *span) + needle))

    def find(self, sub, start=None, end=None):
        found = self._find(b"f", sub, start, end)
        return found if found < 0 else found - self._a

    def rfind(self, sub, start=None, end=None):
        found = self._find(b"r", sub, start, end)
        return found if found < 0 else found - self._a

    def index(self, sub, start=None, end=None):
        found = self.find(sub, start, end)
        if found < 0:
            raise ValueError("substring not found")
        return found

    def rindex(self, sub, start=None, end=None):
        found = self.rfind(sub, start, end)
        if found < 0:
            raise ValueError("substring not found")
        return found

    def count(self, sub, start=None, end=None):
        return max(0, self._find(b"c", sub, start, end))

    def __contains__(self, sub):
        if not isinstance(sub, str):
            raise TypeError(f"'in <string>' requires string as left operand, not {type(sub).__name__}")
        return self.find(sub) >= 0

    def _affix(self, affix, start, end, at_end):
        if isinstance(affix, tuple):
            return any(self._affix(a, start, end, at_end) for a in affix)
        if not isinstance(affix, str):
            name = "endswith" if at_end else "startswith"
            raise TypeError(f"{name} first arg must be str or a tuple of str, not {type(affix).__name__}")
        if start is not None and start > self.size:
            return False
        a, b, _ = slice(start, end).indices(self.size)
        if a > b or b - a < len(affix):
            return False
        return self._slice(b - len(affix), b) == affix if at_end else self._slice(a, a + len(affix)) == affix

    def startswith(self, prefix, start=None, end=None):
        return self._affix(prefix, start, end, False)

    def endswith(self, suffix, start=None, end=None):
        return self._affix(suffix, start, end, True)

    # Taking apart.

    def split(self, sep=None, maxsplit=-1):
        if sep is not None and not isinstance(sep, str):
            raise TypeError(f"must be str or None, not {type(sep).__name__}")
        if sep == "":
            raise ValueError("empty separator")
        if maxsplit < 0:
            return _list(Parts(self, "fields", "") if sep is None else Parts(self, "sep", sep))
        if sep is None:
            return self._split_fields(maxsplit)
        parts, start = [], 0
        while len(parts) < maxsplit and (found := self.find(sep, start)) >= 0:
            parts.append(self._part(start, found))
            start = found + len(sep)
        parts.append(self._part(start, self.size))
        return parts

    def _split_fields(self, maxsplit):
        words = Parts(self, "fields", "")
        count = min(maxsplit, words.size)
        parts = list(words[:count])
        if words.size > count:
            parts.append(self._part(words.bounds(count)[0], self.size))
            if isinstance(parts[-1], str):
                parts[-1] = parts[-1].rstrip() if maxsplit < 0 else parts[-1]
        return parts

    def rsplit(self, sep=None, maxsplit=-1):
        if sep == "":
            raise ValueError("empty separator")
        if maxsplit < 0:
            if sep is None or not _overlaps_itself(sep):
                return self.split(sep)
            raise _unsupported("rsplit", "rfind and slices")
        if sep is None:
            return self._rsplit_fields(maxsplit)
        parts, end = [], self.size
        while len(parts) < maxsplit and (found := self.rfind(sep, 0, end)) >= 0:
            parts.append(self._part(found + len(sep), end))
            end = found
        parts.append(self._part(0, end))
        return parts[::-1]

    def _rsplit_fields(self, maxsplit):
        words = Parts(self, "fields", "")
        rest = max(0, words.size - maxsplit)
        parts = list(words[rest:])
        return [self._part(0, words.bounds(rest - 1)[1]), *parts] if rest else parts

    def partition(self, sep):
        if sep == "":
            raise ValueError("empty separator")
        found = self.find(sep)
        if found < 0:
            return self, "", ""
        return self._part(0, found), sep, self._part(found + len(sep), self.size)

    def rpartition(self, sep):
        if sep == "":
            raise ValueError("empty separator")
        found = self.rfind(sep)
        if found < 0:
            return "", "", self
        return self._part(0, found), sep, self._part(found + len(sep), self.size)

    def splitlines(self, keepends=False):
        return _list(Parts(self, "lines", "", keepends))

    def lines(self, start=None, end=None, keepends=False):
        """Lines as a file has them, ended by \\n or \\r\\n; a part of them if
        start or end is given."""
        lines = Parts(self, "newlines", "", keepends)
        return lines if start is None and end is None else lines[start:end]

    def __iter__(self):
        for start in range(0, self.size, _STREAM):
            yield from self._slice(start, start + _STREAM)

    def json_lines(self, errors="raise"):
        """The rows of JSON Lines, decoded. Lines of white space are left out; errors="skip" also
        leaves out lines that are not JSON, and counts them in skipped."""
        return lazy.load("tables").json_lines(self, errors)

    def table(self, name=None, delimiter=None, **options):
        """The rows of CSV or JSON Lines as dicts, or those of a sheet, by its name. The names of the
        columns are in columns. The options for CSV are header, skip, delim, quote, escape, comment,
        nullstr, decimal and thousands."""
        return lazy.load("tables").table(self, name, delimiter, **options)

    @property
    def tables(self):
        """The names of the tables in a file that has several, such as sheets."""
        return list(lazy.load("tables").names(self))

    @property
    def parts(self):
        """The pages, sheets, slides, chapters, messages or cells of a document, by number or title."""
        return Sections(self)

    def image(self, dpi=100):
        """A picture of a page of a PDF: context.parts[0].image()."""
        raise ValueError("only pages of a PDF have an image: context.parts[0].image()")

    def _strip(self, chars, left, right):
        start, end, step = 0, self.size, 64  # most texts have little to strip
        while left and start < end:
            block = self._slice(start, min(end, start + step))
            kept = block.lstrip(chars)
            start += len(block) - len(kept)
            left, step = not kept, min(16 * step, _BLOCK)
        step = 64
        while right and start < end:
            block = self._slice(max(start, end - step), end)
            kept = block.rstrip(chars)
            end -= len(block) - len(kept)
            right, step = not kept, min(16 * step, _BLOCK)
        return self._part(start, end)

    def strip(self, chars=None):
        return self._strip(chars, True, True)

    def lstrip(self, chars=None):
        return self._strip(chars, True, False)

    def rstrip(self, chars=None):
        return self._strip(chars, False, True)

    def removeprefix(self, prefix):
        return self._part(len(prefix), self.size) if self.startswith(prefix) else self

    def removesuffix(self, suffix):
        return self._part(0, self.size - len(suffix)) if suffix and self.endswith(suffix) else self

    # Regular expressions.

    def search(self, pattern, flags=0):
        return regexes.search(pattern, self, flags)

    def findall(self, pattern, flags=0):
        return regexes.findall(pattern, self, flags)

    def finditer(self, pattern, flags=0):
        return regexes.finditer(pattern, self, flags)

    # What only a str can do.

    def __getattr__(self, name):
        method = getattr(str, name, None)
        if method is None or name.startswith("__"):
            raise AttributeError(f"'LazyText' object has no attribute {name!r}")
        real = self.real()
        if real is not self:
            return getattr(real, name)
        if self.size > _WHOLE:
            raise _unsupported(name, "a part: context[a:b], context.lines(a, b), context.chunks(size)")
        return getattr(self.text(), name)

    def __add__(self, other):
        return str(self) + str(other) if isinstance(other, (str, LazyText)) else NotImplemented

    def __radd__(self, other):
        return other + str(self) if isinstance(other, str) else NotImplemented

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return LazyText, (self._info, self._a, self._b)


def _unsupported(name, instead):
    return TypeError(f"the context is too long for str.{name}: use {instead}")


def _overlaps_itself(sep):
    return any(sep[k:] == sep[:-k] for k in range(1, len(sep)))


def fits(text, parts):
    """Reports whether a list of the parts of a text fits into the memory."""
    return fits_whole(text) and parts.cost <= room


def fits_whole(text):
    """Reports whether a copy of the text fits into the memory."""
    return text.size * (1 if text.ascii else 4) <= room


def _list(parts):
    return list(parts) if fits(parts._text, parts) else parts


class ShortText(str):
    """A text that is in the guest's memory, with what a long text has beyond a str."""

    __slots__ = ("_info",)  # attributes cannot be set, as for a str
    _a = 0

    @property
    def _id(self):
        return self._info["id"]

    @property
    def _b(self):
        return len(self)

    size = _b

    def real(self):
        return self

    text = real

    def _slice(self, start, end):
        return self[start:end]

    def lines(self, start=None, end=None, keepends=False):
        """Lines as a file has them, ended by \\n or \\r\\n; a part of them if
        start or end is given."""
        lines = lazy.load("tables").Lines(self, keepends)
        return lines if start is None and end is None else lines[start:end]

    def open(self):
        """A file-like object over the text."""
        return io.StringIO(self, newline="")

    def search(self, pattern, flags=0):
        return re.search(pattern, self, flags)

    def findall(self, pattern, flags=0):
        return re.findall(pattern, self, flags)

    def finditer(self, pattern, flags=0):
        return re.finditer(pattern, self, flags)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        return str, (str.__str__(self),)


for _name in ("nbytes", "name", "path", "type", "encoding", "ascii", "invalid_bytes", "chunks", "bytes", "json_lines",
              "table", "tables", "parts", "image"):
    setattr(ShortText, _name, LazyText.__dict__[_name])
ShortText.__name__ = ShortText.__qualname__ = "str"
ShortText.__module__ = "builtins"


LONG = {LazyText}  # the types of long texts

if hasattr(_rlm, "Text"):  # at the end: these need LazyText
    import realtexts
import adapters
import lazy
import regexes
