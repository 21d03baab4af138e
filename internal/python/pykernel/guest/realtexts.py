"""A long text as a real str: its characters lie in a mapping of the guest's memory, and
CPython's own code does everything with it. The methods below are those that would copy the
text, and those that the host answers faster because it searches on all processors.

The host writes the characters into a file at the first use, which takes seconds for a
gigabyte. So a context is a LazyText until a snippet does more than ask the host."""

import os
import sys

import _rlm
import contexts
import wire

if getattr(_rlm, "native", False):
    from nativetexts import Text as _Mapped, check, forget_threads, text as _map
    _NEAR = 1 << 22  # characters that are searched here before the host is asked
else:
    from _rlm import Text as _Mapped, text as _map
    _NEAR = 1 << 18

LazyText, Parts, is_alone = contexts.LazyText, contexts.Parts, contexts.is_alone

_find, _rfind, _count = str.find, str.rfind, str.count


class Text(_Mapped):
    """Is called str: error messages and models look at the name."""

    __slots__ = ()
    __module__, __qualname__ = "builtins", "str"

    # What it is, beyond a str.

    @property
    def _id(self):
        return self._info["id"]

    @property
    def _b(self):
        return self._a + len(self)

    @property
    def size(self):
        return len(self)

    def real(self):
        return self

    text = real

    def __repr__(self):
        if len(self) <= contexts._WHOLE:
            return str.__repr__(self)
        return f"<str {self.name!r}: {len(self):,} characters of {self.type}, starts {self[:60]!r}>"

    def __reduce_ex__(self, protocol):
        return str, (str.__str__(self),)

    def __rlm_whole__(self):
        if len(self) > contexts._WHOLE:
            raise contexts._too_long("FINAL(context)", self)
        return str.__str__(self)

    def _slice(self, start, end):
        return self[start:end]

    _part = _slice

    def encode(self, encoding="utf-8", errors="strict"):
        if encoding in ("utf-8", "utf8") and self.isascii():
            encoding = "ascii"  # the same, and CPython copies a part at once
        return str.encode(self, encoding, errors)

    # Searching: nearby here, in the rest by the host.

    def find(self, sub, start=None, end=None, /):
        a, b, _ = slice(start, end).indices(len(self))
        if b - a <= _NEAR or not isinstance(sub, str) or is_alone():
            return _find(self, sub, start, end)
        near = a + _NEAR + len(sub)
        found = _find(self, sub, a, min(near, b))
        if found >= 0 or near >= b:
            return found
        return LazyText.find(self, sub, a + _NEAR, b)

    def rfind(self, sub, start=None, end=None, /):
        a, b, _ = slice(start, end).indices(len(self))
        if b - a <= _NEAR or not isinstance(sub, str) or is_alone():
            return _rfind(self, sub, start, end)
        near = b - _NEAR - len(sub)
        found = _rfind(self, sub, max(near, a), b)
        if found >= 0 or near <= a:
            return found
        return LazyText.rfind(self, sub, a, b - _NEAR)

    def count(self, sub, start=None, end=None, /):
        a, b, _ = slice(start, end).indices(len(self))
        if b - a <= _NEAR or not isinstance(sub, str) or is_alone():
            return _count(self, sub, start, end)
        return LazyText.count(self, sub, a, b)

    def __contains__(self, sub):
        if not isinstance(sub, str):
            return str.__contains__(self, sub)
        return self.find(sub) >= 0

    # Taking apart.

    def split(self, sep=None, maxsplit=-1):
        if not _is_separator(sep):
            return str.split(self, sep, maxsplit)  # which raises
        if is_alone() or maxsplit < 0 and _fits(self, *_kind(sep)):
            return str.split(self, sep, maxsplit)
        return LazyText.split(self, sep, maxsplit)

    def rsplit(self, sep=None, maxsplit=-1):
        if not _is_separator(sep) or is_alone() or (
            contexts.fits_whole(self) and (maxsplit >= 0 or _fits(self, *_kind(sep)))
        ):
            return str.rsplit(self, sep, maxsplit)
        return LazyText.rsplit(self, sep, maxsplit)

    def splitlines(self, keepends=False):
        if _fits(self, "lines", ""):
            return str.splitlines(self, keepends)
        return LazyText.splitlines(self, keepends)

    def lines(self, start=None, end=None, keepends=False):
        if is_alone():
            return contexts.cut_lines(self, keepends)[start:end]
        return LazyText.lines(self, start, end, keepends)


for _name, _method in vars(Text).copy().items():
    if callable(_method) and hasattr(_method, "__qualname__"):
        _method.__qualname__ = f"str.{_name}"  # error messages say it
Text.__name__ = "str"
for _name in ("nbytes", "name", "path", "type", "encoding", "ascii", "invalid_bytes", "index", "rindex", "chunks",
              "bytes", "open", "json_lines", "table", "tables", "parts", "image", "search", "findall", "finditer", "partition", "rpartition",
              "strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "_strip", "_find", "_span", "_split_fields", "_rsplit_fields",
              "__copy__", "__deepcopy__", "__rlm_ref__"):
    setattr(Text, _name, LazyText.__dict__[_name])


def _is_separator(sep):
    return sep is None or isinstance(sep, str) and sep != ""


def _kind(sep):
    return ("fields", "") if sep is None else ("sep", sep)


def _fits(text, kind, sep):
    return is_alone() or contexts.fits(text, Parts(text, kind, sep))


refused = {}  # the texts that the host cannot map: number -> why


def open(info):
    """The Text of one input, or None where there is none."""
    if info["id"] in refused:
        return None
    if info["chars"] > sys.maxsize:
        refused[info["id"]] = "it is too long"
        return None
    try:
        at = wire.decode(wire.text(f"tm{info['id']}"))
    except wire.HostError as error:
        refused[info["id"]] = str(error)
        return None
    if at["chars"] != info["chars"]:
        raise wire.HostError(f"context file {info['name']!r} was written to while in use")
    try:
        return _map(Text, info, at["place"], at["chars"], at["width"], at["ascii"])
    except OSError as error:  # the guest has no room for the mapping, or no such file
        refused[info["id"]] = str(error)
        return None


def _leave_host():
    """Runs in a process that a snippet has forked: it has the characters, and no host to ask."""
    if is_alone():
        forget_threads()
        contexts.LONG.discard(Text)


if getattr(_rlm, "native", False):
    check(Text)
    os.register_at_fork(after_in_child=_leave_host)
contexts.LONG.add(Text)
wire.texts.add(Text)
