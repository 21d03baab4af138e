"""Files that are not text: their bytes, as a bytes object or, if they are many, on demand."""

import io

import lazy
import pages
import wire

_EAGER = 8 << 20  # more bytes are read on demand
_WHOLE = 64 << 20  # no more is ever copied at once


def open_binary(info):
    """Returns the bytes of a file as it is, from the host's description."""
    if info["raw"] > _EAGER:
        return LongBytes(info)
    value = Bytes(_read(info, 0, info["raw"]))
    value._info = info
    return value


def again(number):
    """Returns the bytes of the file that had this number before the session moved."""
    return open_binary(wire.decode(wire.text(f"ti{number}")))


def _read(info, start, end):
    return wire.call(f"tb{info['id']},{start},{end}") if end > start else b""


class File:
    """What the bytes know about their file."""

    @property
    def _id(self):
        return self._info["id"]

    @property
    def size(self):
        return self._info["raw"]

    nbytes = size

    @property
    def name(self):
        return self._info["name"]

    @property
    def type(self):
        """What the bytes seem to be: png, pdf, sqlite ..., or binary."""
        return self._info["type"]

    @property
    def path(self):
        """The file to read it from by other means, None if there is none."""
        return self._info.get("path")

    @property
    def bytes(self):
        return self

    def table(self, name=None):
        """The rows of a table as dicts: of Parquet, Arrow and SQLite. The names of the columns are in
        columns."""
        return lazy.load("tables").table(self, name)

    @property
    def tables(self):
        """The names of the tables in a database."""
        return list(lazy.load("tables").names(self))

    @property
    def parts(self):
        """The pages of a PDF without text: each has an image()."""
        found = wire.decode(wire.text(f"td{self._id}"))
        if not found:
            raise AttributeError("'bytes' object has no attribute 'parts'")
        return [pages.make_part("", self._info, number) for number in range(len(found))]

    def __call__(self, start=0, end=None):
        return self[start:end]

    def __reduce_ex__(self, protocol):
        return again, (self._id,)


class Bytes(File, bytes):
    """The bytes of a file that is not text."""

    def open(self):
        """A file-like object over the bytes."""
        return io.BytesIO(self)


Bytes.__name__ = Bytes.__qualname__ = "bytes"
Bytes.__module__ = "builtins"


class LongBytes(File):
    """The bytes of a long file that is not text: parts of it, and open() for a file-like object."""

    def __init__(self, info):
        self._info = info

    def __len__(self):
        return self.size

    def __getitem__(self, key):
        if not isinstance(key, slice):
            index = key + self.size if key < 0 else key
            if not 0 <= index < self.size:
                raise IndexError("index out of range")
            return _read(self._info, index, index + 1)[0]
        start, end, step = key.indices(self.size)
        if step != 1:
            return bytes(self[index] for index in range(start, end, step))
        if end - start > _WHOLE:
            raise MemoryError(f"{end - start:,} bytes are too many at once: take parts, or context.open()")
        return _read(self._info, start, end)

    def __iter__(self):
        for start in range(0, self.size, 1 << 20):
            yield from self[start : start + (1 << 20)]

    def __bytes__(self):
        return self[:]

    def open(self):
        """A file-like object over the bytes: read, seek, and what zipfile, PIL and others need."""
        return io.BufferedReader(_Raw(self), 1 << 20)

    def __getattr__(self, name):
        if not name.startswith("_") and hasattr(bytes, name):
            raise AttributeError(
                f"the file is too long for bytes.{name}: take parts, context[a:b].{name}, or context.open()")
        raise AttributeError(f"'bytes' object has no attribute {name!r}")

    def __repr__(self):
        return f"<bytes {self.name!r}: {self.size:,} bytes of type {self.type}>"


class _Raw(io.RawIOBase):
    """Reads the bytes from the host."""

    def __init__(self, source):
        self._source, self._at = source, 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        base = (0, self._at, self._source.size)[whence]
        if base + offset < 0:
            raise ValueError("negative seek position")
        self._at = base + offset
        return self._at

    def readinto(self, buffer):
        data = self._source[self._at : self._at + min(len(buffer), 1 << 22)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
