"""Where a pattern matches in a LazyText: found by the host if the translation is
exact, else by Python's re in the parts that can hold a match."""

import collections
import operator
import re

import contexts
import patterns
import wire

LazyText = contexts.LazyText
_BATCH = 512
_MUCH = 1 << 20
_stock_compile = re.compile
_translations = collections.OrderedDict()


def compiled(pattern, flags=0):
    """Returns CPython's own object of a pattern that searches a LazyText."""
    pattern = _stock_compile(getattr(pattern, "stock", pattern), flags)
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


def bounds(text, pos, endpos):
    """pos and endpos as re takes them: a negative one is 0, and not from the end."""
    end = text.size if endpos is None else min(max(operator.index(endpos), 0), text.size)
    return min(max(operator.index(pos), 0), text.size), end


def spans(pattern, text, pos=0, endpos=None, shape="{}"):
    """Yields each match's group offsets, a flat tuple as the host sends it."""
    start, end = bounds(text, pos, endpos)
    if start > end:
        return
    view = _view(text, 0, end)
    translation = _translation(pattern, view)
    if translation.exact and end > 0:  # an empty text has no \B to Python's
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


def anchored(pattern, text, start, end, whole):
    """The spans of the match at start, to end if it shall be the whole; None if
    there is none."""
    translation = _translation(pattern, _view(text, 0, end))
    if translation.exact and 0 < end >= start:
        try:
            return _host_anchored(translation.expr, text, start, end, whole)
        except wire.HostError as error:
            if not str(error).startswith("regexp:"):
                raise
    stop = max(start, end)  # an end before start: no character matches, yet "" does
    if translation.reach is not None:
        stop = min(stop, start + translation.reach)
    if not translation.newline:
        found = text.find("\n", start, stop)
        stop = stop if found < 0 else min(stop, found + 2)  # what follows tells $ that more does
    base = max(0, start - translation.behind - 2)
    if whole and stop < end:
        return None  # no match is as long
    part = _as_str(text, base, stop)
    match = (pattern.fullmatch if whole else pattern.match)(part, start - base, min(end, max(1, end - base)))
    return flat(match, base) if match else None


def _host_anchored(expr, text, start, end, whole):
    """\\A is the beginning of what the host sees: start, or one character before,
    so that ^ and \\b see it, and \\A in expr does not match."""
    before = min(start, 1)
    expr = r"\A" + "(?s:.)" * before + f"(?:{expr})" + r"\z" * whole
    found = next(_host_spans(expr, _view(text, start - before, end), 0), None)
    if found is None:
        return None
    found = [x + start - before if x >= 0 else -1 for x in found]
    return [start, *found[1:]]


def _view(text, start, end):
    return text if (start, end) == (0, text.size) else LazyText(text._info, text._a + start, text._a + end)


def _as_str(text, start, end):
    """Returns the characters from start to end as a str: a copy if they are few."""
    part = _view(text, start, end)
    if end - start <= contexts._WHOLE:
        return part.text()
    real = part.real()
    if isinstance(real, str):
        return real
    raise TypeError(
        "this pattern needs Python's own re (lookaround, backreference, \\b on text beyond ASCII or a count above 1000) "
        "and may run over line ends without bound: search in context.chunks(size) or use a pattern that stays within "
        "a line")


def flat(match, base):
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
    else:
        base = max(0, start - translation.behind)
        for match in pattern.finditer(_as_str(text, base, text.size), start - base):
            yield flat(match, base)


def _candidates(translation, text, start):
    """Spans of whole lines that may hold a match; without a relaxed expression
    all lines, in blocks."""
    if translation.expr:
        position, batch = text._a + start, 1
        try:
            while position >= 0:
                reply = wire.decode(wire.send("tg", f"{text._id},{text._a},{text._b},{position},{batch},{translation.expr}"))
                position, batch = reply[0], min(2 * batch, _BATCH)
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
    with some characters more on either side so that anchors and lookbehinds see
    what is there."""
    last, read = -1, 0
    for low, high in _candidates(translation, text, start):
        low = max(low, start)
        if read > _MUCH and 4 * read > low - start and isinstance(real := text.real(), str):
            # So many lines can hold a match that the host's choice saves nothing.
            for match in pattern.finditer(real, low):
                if match.span() != (last, last):
                    yield flat(match, 0)
            return
        read += high - low
        base, end = max(0, low - translation.behind), min(text.size, high + 1)
        block = text._slice(base, end) if end > base else ""
        for match in pattern.finditer(block, low - base):
            first = match.start() + base
            if first >= high and not (first == high == text.size):
                break
            if first == last and match.end() + base == last:
                continue
            yield flat(match, base)
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
            yield flat(match, base)
            following = max(following, match.end() + base + (match.end() == match.start()))
        if limit >= text.size:
            return
        position = following
