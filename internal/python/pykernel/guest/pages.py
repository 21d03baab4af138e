"""The parts of a document, and the pictures of those that are pages."""

import operator

import output
import wire

_LEAST, _MOST = 36, 300  # dots per inch, as the host has them


class Part(str):
    """A part of a document: its text."""

    __slots__ = ("_info", "_number")  # attributes cannot be set, as for a str

    def image(self, dpi=100):
        """A picture of a page of a PDF: a bytes object with a PNG, for llm_query(..., images=[...])."""
        if self._info["type"] != "pdf":
            raise ValueError("only pages of a PDF have an image")
        dpi = operator.index(dpi)
        if not _LEAST <= dpi <= _MOST:
            raise ValueError(f"dpi must be from {_LEAST} to {_MOST}, not {dpi}")
        lack, _, data = bytes(wire.call(f"tq{self._info['id']},{self._number},{dpi}")).partition(b"\n")
        if lack:
            output.stderr.write(f"note: the picture of page {self._number + 1} may lack {lack.decode()}\n")
        return Picture(data)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        return str, (str.__str__(self),)


class Picture(bytes):
    """A PNG, which notebooks and terminals show."""

    def _repr_png_(self):
        return bytes(self)

    def __repr__(self):
        width, height = int.from_bytes(self[16:20], "big"), int.from_bytes(self[20:24], "big")
        return f"<PNG of {width:,} x {height:,} pixels: {len(self):,} bytes>"

    __str__ = __repr__

    def __reduce_ex__(self, protocol):
        return bytes, (bytes(self),)


for _kind in (Part, Picture):
    _kind.__name__ = _kind.__qualname__ = _kind.__base__.__name__
    _kind.__module__ = "builtins"


def make_part(text, info, number):
    """Returns a part of a document. A very long one stays as it is: it has no image."""
    if type(text) is not str:
        return text
    part = Part(text)
    part._info, part._number = info, number
    return part
