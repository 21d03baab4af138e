"""Exact work over many model calls: chunk, map_llm, filter_llm, reduce_llm, tally.

Models get exact aggregates wrong by hand. Here the host makes the calls, at once
and within the budget, and counting is done by code. The names may be taken by a
snippet for its own use: they are common words.
"""

import coverage
import hostcall
import protocol
import queries

_map = hostcall.HostFunction("map_llm")
_filter = hostcall.HostFunction("filter_llm")
_reduce = hostcall.HostFunction("reduce_llm")
_tally = hostcall.HostFunction("tally")


def chunk(data, size=100_000, overlap=0, sep=None):
    """chunk(data, size=100_000, overlap=0, sep=None): data cut into parts of at most
    size characters (items, for a list). With sep, such as "\\n", no part is cut
    between two separators unless it alone is longer than size."""
    if size < 1 or overlap < 0 or overlap >= size:
        raise ValueError("chunk: size must be at least 1, and overlap at least 0 and less than size")
    total = getattr(data, "size", None)
    total = total if isinstance(total, int) else len(data)
    parts, start = [], 0
    while start < total:
        end = min(start + size, total)
        if sep is not None and end < total:
            at = data[start:end].rfind(sep)
            if at >= 0 and at + len(sep) > overlap:
                end = start + at + len(sep)
        parts.append(data[start:end])
        if end == total:
            break
        start = end - overlap
    return parts


def _swapped(prompt, items):
    """Returns the arguments in our order; models also write map(items, prompt)."""
    if isinstance(items, str) and not isinstance(prompt, str):
        prompt, items = items, prompt
    if isinstance(items, (str, bytes)) or hasattr(type(items), "__rlm_ref__"):
        raise TypeError("the items are one text: pass a list of its parts, such as text.splitlines() or chunk(text)")
    return prompt, list(items)


def map_llm(prompt, items, schema=None, model=None, cover=False):
    """map_llm(prompt, items, schema=None, model=None): one model call for each item, at
    once; the answers in order. A failed slot is a SubCallError.

    With cover=True the items are records, asked for several to a call, and again in
    smaller groups where a reply was wrong. The result is a list with a value for each
    record, in order, and has
      .counts     the Counter of the values; a label of the schema that does not occur counts 0
      .missing    the records that still have no value: index, record, reason
      .retry()    asks again for them
      .partial()  the values with None for each of them; the run reports the gap
    While a record is missing, reading or counting the values raises."""
    prompt, items = _swapped(prompt, items)
    if cover:
        return coverage.cover(prompt, items, schema, model)
    if not items:
        return []
    _, named, rebuild = queries.take_type((), {"schema": schema, "model": model})
    return queries.slots(_map(prompt, items, **named), rebuild)


def filter_llm(prompt, items, model=None):
    """filter_llm(prompt, items, model=None): the items for which a model answers true."""
    prompt, items = _swapped(prompt, items)
    if not items:
        return []
    return [item for item, keep in zip(items, _filter(prompt, items, model=model)) if keep is True]


def reduce_llm(prompt, items, schema=None, model=None, fan_in=8):
    """reduce_llm(prompt, items, schema=None, model=None, fan_in=8): the items combined
    into one answer, fan_in at a time, as a tree."""
    prompt, items = _swapped(prompt, items)
    _, named, rebuild = queries.take_type((), {"schema": schema, "model": model})
    value = _reduce(prompt, items, fan_in=fan_in, **named)
    return value if rebuild is None else rebuild(value)


def tally(items, labels=None, prompt=None, model=None):
    """tally(items, labels=None, prompt=None, model=None): exact counts, most frequent
    first, of the values in items, or with a prompt of the label that a model gives
    each item. Labels that do not occur count 0."""
    if isinstance(items, str) and prompt is not None and not isinstance(prompt, str):
        items, prompt = prompt, items
    values = list(items)
    if prompt is not None and values:
        values = _tally(values, labels=list(labels or ()), prompt=prompt, model=model)
    counts = {}
    for value in values:
        key = value if value.__hash__ else repr(value)
        counts[key] = counts.get(key, 0) + 1
    ordered = dict(sorted(counts.items(), key=lambda pair: -pair[1]))
    for label in labels or ():
        ordered.setdefault(label, 0)
    return ordered


NAMES = {
    "chunk": chunk,
    **{name: globals()[name] for name, (_, arguments) in protocol.FUNCTIONS.items() if arguments == "combined"},
}
