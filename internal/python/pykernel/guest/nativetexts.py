"""Long texts as real strs in a CPython without C code of ours: scripts/wasm/runner.c does the
same for tier wasm.

An instance of a subclass of str keeps its characters behind a pointer. Here the pointer leads to
a file of the host, which is mapped for reading. ctypes changes a new instance to that, and only
after each of its words was found to be what is known of CPython. An instance is never freed: it
would free what is not its own. It is used again once nobody refers to it."""

import ctypes
import itertools
import sys
from _thread import allocate_lock
from sys import getrefcount

import _rlm

_item, _sizeof = str.__getitem__, str.__sizeof__
_VIEW = 1 << 20  # longer slices share the mapping
_BLOCK = 1 << 16  # characters that are looked at together
_UNKNOWN = 2**64 - 1  # the hash that has not been computed yet

# Where a str keeps what, in words: before CPython 3.12, and from then on.
_FIELDS = ("length", "hash", "utf8_length", "utf8", "wide_length", "wide", "data")
_LAYOUTS = {80: (2, 3, 6, 7, 8, 5, 9), 64: (2, 3, 5, 6, None, None, 7)}
_LENGTH = 97  # of a sample
_PATIENCE = 0.05  # seconds to wait for a thread that a signal may have stopped

# The four forms of a str: bytes per character, whether all are ASCII. A sample, its encoding.
_FORMS = {
    (1, True): ("a", "ascii"), (1, False): ("\xe9", "latin-1"),
    (2, False): ("\u0394", "utf-16-le"), (4, False): ("\U0001f600", "utf-32-le"),
}


class Text(str):
    __slots__ = ("_info", "_a")
    __module__ = "_rlm"

    def __new__(cls, *args, **kwargs):
        return str(*args, **kwargs)  # only the host can make one of these

    def __str__(self):
        return self  # str would copy it

    def __getitem__(self, key):
        if type(key) is slice:
            start, end, step = key.indices(len(self))
            if step == 1 and end - start > _VIEW:
                return _part(self, start, end)
        return _item(self, key)

    def __reversed__(self):
        ends = range(len(self), 0, -_BLOCK)
        return itertools.chain.from_iterable(reversed(_item(self, slice(max(0, end - _BLOCK), end))) for end in ends)


def _part(text, start, end):
    """Returns the characters from start to end. A part shares the mapping only if a str of its
    own had the same form: CPython compares strs of different forms as different."""
    if end - start == len(text):
        return text
    place = _places[text._info["id"]]
    if not place.has_form(text, start, end):
        return _item(text, slice(start, end))
    return place.make(text._a + start, end - start)


class _Place:
    """The characters of one text of the host."""

    def __init__(self, kind, info, address, width, ascii):
        self.info, self.address, self.chars, self.form = info, address, info["chars"], (width, ascii)
        self.stock = _stocks[kind, self.form]

    def make(self, start, length):
        """Returns the characters from start on."""
        if start < 0 or length < 1 or start + length > self.chars:
            raise ValueError("no text lies there")
        text = self.stock.take()
        text._info, text._a = self.info, start
        return self.stock.point(text, self.address + start * self.form[0], length)

    def has_form(self, text, start, end):
        if self.form[1]:
            return not _may_be_hex(ctypes.string_at(self.address + text._a + end - _LAST, _LAST + 1))
        blocks = (_item(text, slice(at, min(at + _BLOCK, end))) for at in range(start, end, _BLOCK))
        return any(_form_of(block) == self.form for block in blocks)


def _may_be_hex(last):
    """Reports whether bytes.fromhex might take the last byte, which is behind a part: of an odd
    number of digits it reads one more."""
    return last[-1] in _HEX and last[-2] in _HEX and not last.strip(_HEX + b" \t\n\r\v\f")


_LAST, _HEX = 64, b"0123456789abcdefABCDEF"


def _form_of(block):
    if block.isascii():
        return 1, True
    if len(block) < _FEW:
        widest = max(block)
        return 1 if widest < "\u0100" else 2 if widest < "\U00010000" else 4, False
    return _sizeof(block) // len(block), False


_FEW = 1 << 8  # more than the bytes of a str beside its characters


class _Stock:
    """The instances of one form, those in use and those that can be used again."""

    def __init__(self, kind, form):
        self.kind, self.form = kind, form
        layout = _LAYOUTS.get(str.__basicsize__)
        if layout is None or sys.byteorder != "little":
            raise ImportError("the str of this CPython is unknown")
        self.at = dict(zip(_FIELDS, layout))
        self.all, self.free, self.sweep_at = [], [], 64
        self.lock = allocate_lock()
        self.add()
        self.unused = self.count()[0]  # references to an instance that nobody else refers to

    def add(self):
        """Makes an instance of its own characters, checks each word, and keeps it for good."""
        sample, encoding = _FORMS[self.form]
        text = str.__new__(self.kind, sample * _LENGTH)
        words, has = self.words(text), lambda name: self.at[name] and words[self.at[name]]
        data = has("data")
        shared = {
            "length": _LENGTH, "utf8_length": _LENGTH * self.form[1], "utf8": data * self.form[1],
            "wide_length": _LENGTH * (self.form[0] == 4), "wide": data * (self.form[0] == 4),
        }
        if not data or words[1] != id(self.kind) or any(
            self.at[name] and has(name) != value for name, value in shared.items()
        ) or ctypes.string_at(data, _LENGTH * self.form[0]) != text.encode(encoding):
            raise ImportError("the str of this CPython is unknown")
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(text))
        self.all.append(text)
        return text

    def words(self, text):
        return (ctypes.c_size_t * (str.__basicsize__ // 8)).from_address(id(text))

    def count(self):
        return [getrefcount(text) for text in self.all]

    def take(self):
        """Returns an instance that nobody uses."""
        if self.lock.acquire(True, _PATIENCE):
            try:
                if not self.free and len(self.all) >= self.sweep_at:
                    self.sweep()
                if self.free:
                    return self.free.pop()
            finally:
                self.lock.release()
        return self.add()

    def sweep(self):
        for number, references in enumerate(self.count()):
            if references == self.unused and self.drop_copies(self.all[number]):
                self.free.append(self.all[number])
        self.sweep_at = 2 * (len(self.all) - len(self.free)) + 64

    def drop_copies(self, text):
        """Frees what CPython has encoded of the text, and reports whether nothing is left."""
        words, shared = self.words(text), (0, self.words(text)[self.at["data"]])
        if words[self.at["utf8"]] not in shared:
            _free(ctypes.c_void_p(words[self.at["utf8"]]))
            self.put(words, "utf8", 0)
        return not self.at["wide"] or words[self.at["wide"]] in shared

    def point(self, text, address, length):
        """Makes a text of the characters at an address. It is empty until it is whole.

        A str ends with a NUL, up to which int and compile read its UTF-8 form. Another character
        follows a part. So CPython encodes a part if it wants this form."""
        words = self.words(text)
        for name in ("length", "utf8_length", "wide_length"):
            self.put(words, name, 0)
        self.put(words, "data", address)
        is_encoded = self.form[1] and ctypes.string_at(address + length, 1) == b"\0"
        self.put(words, "utf8", address * is_encoded)
        if is_encoded:
            self.put(words, "utf8_length", length)
        if self.form[0] == 4:
            self.put(words, "wide", address)
            self.put(words, "wide_length", length)
        self.put(words, "hash", _UNKNOWN)
        self.put(words, "length", length)
        return text

    def put(self, words, name, value):
        if self.at[name]:
            words[self.at[name]] = value


# How CPython frees an encoded copy.
_free = ctypes.pythonapi.PyMem_Free if sys.version_info >= (3, 13) else ctypes.pythonapi.PyObject_Free
_free.restype = None

_stocks = {}  # by class and form
_places = {}  # by the number of the host's text


def text(kind, info, path, length, width, ascii):
    """Returns the text of a file that holds its characters, and a NUL character after them."""
    place = _places.get(info["id"])
    if place is None:
        check(kind)
        place = _Place(kind, info, _rlm.map_file(path, (length + 1) * width), width, bool(ascii))
        _places[info["id"]] = place
    return place.make(0, length)


def forget_threads():
    """Makes the texts usable in a forked process, which has no other threads."""
    for stock in _stocks.values():
        stock.lock = allocate_lock()


def check(kind):
    """Raises an ImportError if this CPython cannot have such texts."""
    for form, (sample, encoding) in _FORMS.items():
        if (kind, form) in _stocks:
            continue
        stock, own = _Stock(kind, form), ("x" if form[1] else sample) + "yz" * 40 + sample
        characters = ctypes.create_string_buffer(own.encode(encoding) + bytes(form[0]))
        made = stock.point(stock.take(), ctypes.addressof(characters), len(own))
        try:
            if (len(made), made == own, hash(made) == hash(own), _item(made, 0), _item(made, -1), made.upper(),
                    made.encode(), made.isascii()) != (
                    len(own), True, True, own[0], own[-1], own.upper(), own.encode(), own.isascii()):
                raise ImportError("a str of this CPython is not what it was made")
        finally:
            stock.point(made, ctypes.addressof(_nothing), 0)
        _stocks[kind, form] = stock


_nothing = ctypes.create_string_buffer(8)  # the characters of a text that is not in use
