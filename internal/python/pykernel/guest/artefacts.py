"""Results that are no text: pictures, tables as HTML, figures, bytes. The host keeps them
as the snippet's artefacts and names them; the guest gives the bytes and the kind.

A value offers its forms by the methods that notebooks use: _repr_png_, _repr_html_ and so on.
"""

import base64
import sys

import binaries
import output
import wire

# The forms of a value, the best first. One picture and one text are kept.
_PICTURES = (("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"), ("_repr_svg_", "image/svg+xml"))
_TEXTS = (("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"), ("_repr_latex_", "text/latex"))


def keep(kind, form, data):
    """Gives the host an artefact, and returns how it describes it. Raises a HostError beyond
    the host's bounds."""
    head = f"a{kind}\0{form}\0".encode()
    return wire.decode(str(wire.call(head + bytes(data)), "utf-8"))


def show(value):
    """Keeps the forms of the last expression's value."""
    figure = _as_figure(value)
    if figure is not None:
        _try_keep("figure", "image/png", figure)
        return
    for forms in (_PICTURES, _TEXTS):
        for name, form in forms:
            data = _form(value, name)
            if data is not None:
                _try_keep("value", form, data)
                break


def _form(value, name):
    """Returns a form of a value as bytes, None if it has none."""
    method = getattr(type(value), name, None)
    if method is None:
        return None
    try:
        data = method(value)
    except Exception:
        return None  # notebooks fall back to another form, too
    data = data[0] if isinstance(data, tuple) and data else data  # with metadata
    if isinstance(data, str):
        return data.encode("utf-8", "replace")
    return bytes(data) if isinstance(data, (bytes, bytearray)) else None


def _try_keep(kind, form, data):
    try:
        keep(kind, form, data() if callable(data) else data)
    except wire.HostError as error:
        output.stderr.write(f"note: {error}\n")


def _as_figure(value):
    """Returns a function that draws what matplotlib shows, None for anything else."""
    figures = sys.modules.get("matplotlib.figure")
    if figures is None:
        return None
    if isinstance(value, (list, tuple)) and value:
        value = value[0]  # plot() returns its lines
    if not isinstance(value, figures.Figure):
        return None
    _close(value)
    return lambda: _draw(value)


def _draw(figure):
    import io

    data = io.BytesIO()
    figure.savefig(data, format="png", bbox_inches="tight")
    return data.getvalue()


def _close(figure):
    plots = sys.modules.get("matplotlib.pyplot")
    if plots is not None:
        plots.close(figure)


def keep_figures():
    """Keeps and closes the figures that pyplot has open, as notebooks do."""
    plots = sys.modules.get("matplotlib.pyplot")
    if plots is None:
        return
    for number in plots.get_fignums():
        figure = plots.figure(number)
        try:
            _try_keep("figure", "image/png", lambda: _draw(figure))
        except Exception as error:
            output.stderr.write(f"note: cannot draw figure {number}: {type(error).__name__}: {error}\n")
        finally:
            plots.close(figure)


def encoded(images):
    """Returns pictures for a model as base64: bytes, the names of files, and whatever a
    notebook shows as PNG or JPEG. One alone makes a list, too."""
    if isinstance(images, _SINGLE) or not hasattr(images, "__iter__") or _picture(images) is not None:
        images = [images]
    return [_encode(image) for image in images]


_SINGLE = (str, bytes, bytearray, memoryview)


def _encode(image):
    if isinstance(image, str):
        if image.startswith("data:"):
            return image
        with open(image, "rb") as file:
            image = file.read()
    data = image if isinstance(image, _SINGLE) else _picture(image)
    if data is None:
        raise TypeError(f"a {type(image).__name__} is not a picture: give bytes, a file's name, "
                        "a figure, or an object with _repr_png_")
    return base64.b64encode(data).decode()


def _picture(value):
    """Returns a value's picture as bytes, None if it has none."""
    if isinstance(value, binaries.LongBytes):
        return bytes(value)
    figures = sys.modules.get("matplotlib.figure")
    if figures is not None and isinstance(value, figures.Figure):
        return _draw(value)
    for name, form in _PICTURES[:2]:  # no model takes SVG
        data = _form(value, name)
        if data is not None:
            return data
    return None


def answer(value):
    """Returns (description,) for an answer that becomes an artefact, None for any other."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        try:
            data.decode()
        except UnicodeDecodeError:
            return (keep("answer", "", data),)
        return None  # it is a text
    draw = _as_figure(value)
    if draw is not None:
        return (keep("answer", "image/png", draw()),)
    for name, form in _PICTURES:
        data = _form(value, name)
        if data is not None:
            return (keep("answer", form, data),)
    return None
