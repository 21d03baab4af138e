import contextlib
import io


def area(width: int, height: int = 1) -> int:
    """The area of a rectangle.

    In squares.
    """
    return width * height


class Box:
    """A box of things."""

    def add(self, thing):
        """Put a thing into it."""


help(area)
help(len)

for value in (Box, Box(), 5, "json", "str.upper", contextlib):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        help(value)
    text = out.getvalue()
    print([part in text for part in ("A box of things.", "Put a thing into it.", "class int", "JSON", "uppercase", "with-statement")])
