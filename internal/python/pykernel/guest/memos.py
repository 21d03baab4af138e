"""What the memo of a reader would hold if a value that failed had been read."""

import definitions
import leftbehind


def restore(reader, data, stand_in):
    """The memo as it would be if all of data had been read: what failed is
    stand_in. Later pickles count on the number of entries."""
    memo = _Memo(reader.memo.copy())
    for i, found in enumerate(_memoized(data)):
        if i not in memo:
            memo[i] = _again(reader, memo, found, stand_in)
    return memo


class _Memo(dict):
    """Notes the variables that share a value with the one that failed."""

    def __getitem__(self, i):
        found = dict.__getitem__(self, i)
        if type(found) is leftbehind.LeftBehind:
            definitions.lost(*found._parts())
        return found


def _again(reader, memo, found, stand_in):
    """Returns what an entry of the memo says of itself: a text, or what two texts name."""
    if type(found) is not tuple:
        return stand_in if found is None else found
    names = [memo.get(part) if type(part) is int else part for part in found]
    if not all(type(name) is str for name in names):
        return stand_in
    try:
        return reader.find_class(*names)
    except Exception:
        return stand_in


# How the argument of an opcode of protocol 5 is laid out: so many bytes, or a
# length of so many bytes and then as many more.
_FIXED = {b"K": 1, b"h": 1, b"q": 1, b"\x80": 1, b"M": 2, b"J": 4, b"j": 4, b"r": 4, b"G": 8, b"\x95": 8}
_SIZED = {b"\x8c": 1, b"C": 1, b"\x8a": 1, b"X": 4, b"B": 4, b"\x8b": 4, b"\x8d": 8, b"\x8e": 8, b"\x96": 8}


_TEXTS = (b"\x8c", b"X", b"\x8d")
_GETS = (b"h", b"j")


def _memoized(data):
    """Yields what is known of each object that the pickles in data put into the memo: a
    text, the two texts that name a class or function, or None. A number stands for the
    text of that entry."""
    at, texts, last = 0, [], None
    while at < len(data):
        opcode = data[at : at + 1]
        at += 1
        if opcode == b"\x94":
            yield last
            continue
        last = None
        size = _FIXED.get(opcode, 0)
        if opcode in _SIZED:
            width = _SIZED[opcode]
            size = int.from_bytes(data[at : at + width], "little")
            at += width
        if opcode in _TEXTS:
            last = data[at : at + size].decode("utf-8", "surrogatepass")
            texts = [*texts[-1:], last]
        elif opcode in _GETS:
            texts = [*texts[-1:], int.from_bytes(data[at : at + size], "little")]
        elif opcode == b"\x93":
            last = tuple(texts)
        at += size
