"""The parts of a long text as sequences: what split and splitlines give where a list would
not fit into the memory, and what lines and chunks give.

A list never is replaced by anything else: where code needs a list, it gets the list, or an
error that says how many items there are and what to do.
"""

import collections.abc
import itertools
import marshal
import sys

import contexts
import lazy
import pages
import wire

_ITEM = 64  # bytes of a short str in a list
_AHEAD = 1024  # items that are read ahead
_BACK = 4096  # items that are read together on the way back

unfinished = None  # the sequence of the last walk in this snippet, unless the walk came to its end
latest = None  # the lines that a walk handed out last, its iterator over them, their text, and its part that they are
ABSENT = object()  # what the host made of a line that it could not load
_READ_ONLY = ("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "__setitem__", "__delitem__")
_OF_LISTS = ("__lt__", "__le__", "__gt__", "__ge__", "__mul__", "__rmul__")


class _Lazy(collections.abc.Sequence):
    """A sequence whose items are made when asked for. Slices are lists while they are short."""

    __slots__ = ("_begun", "_near")
    _LIST = 1 << 16  # longer slices stay lazy
    _span = None  # the part of the text that the last block of lines is

    def __init__(self):
        self._begun = None  # where an iteration has been asked for that has not begun
        self._near = 0, []  # the items that were read last, and where they are

    def __iter__(self):
        self._begun = _caller()
        return self._walk(self._blocks())

    def __reversed__(self):
        return self._walk(self._blocks_back())

    def _walk(self, blocks):
        given = [0]
        walk = _Walk.from_iterable(self._hand_out(blocks, given))
        walk.parts, walk.given = self, given
        return walk

    def _hand_out(self, blocks, given):
        """Yields lists of the items, and counts the items."""
        global unfinished, latest
        self._begun, unfinished = None, self
        for block in blocks:
            given[0] += len(block)
            if self._span is None:
                yield block
            else:
                rows = iter(block)
                latest = block, rows, self._text, self._span
                yield rows
        unfinished = latest = None

    def _blocks_back(self):
        """Returns lists of the items from the last on."""
        for end in range(self.size, 0, -_BACK):
            yield list(self._items(max(0, end - _BACK), end))[::-1]

    def __len__(self):
        # C code that asks for an iterator and, in the same step, for the length makes a list.
        if self._begun is not None and self._begun == _caller():
            self._begun = None
            self.check_room()
        if self.size > sys.maxsize:
            raise OverflowError(f"{self.size:,} items are more than len() can say: use .size")
        return self.size

    def __bool__(self):
        return self.size > 0

    def __getitem__(self, key):
        if isinstance(key, slice):
            start, end, step = key.indices(self.size)
            if step == 1:
                return self._items(start, max(start, end))
            return self._stepped(range(start, end, step))
        try:
            index = key.__index__()
        except AttributeError:
            raise TypeError(f"list indices must be integers or slices, not {type(key).__name__}") from None
        if index < 0:
            index += self.size
        if not 0 <= index < self.size:
            raise IndexError("list index out of range")
        return self._item(index)

    def _item(self, index):
        start, items = self._near
        if not start <= index < start + len(items):
            follows = start + len(items) <= index <= start + len(items) + 8
            start, items = index, self._read(index, min(2 * len(items) or 1, _AHEAD) if follows else 1)
            self._near = start, items
        return items[index - start]

    def _stepped(self, indices):
        """Returns the items at indices, many per request."""
        items, step = [], indices.step
        at_once = max(1, 4096 // abs(step))
        for k in range(0, len(indices), at_once):
            some = indices[k : k + at_once]
            block = list(self._items(min(some[0], some[-1]), max(some[0], some[-1]) + 1))
            items += block[::step]
        return items

    def __contains__(self, value):
        return any(value in block for block in self._blocks())

    def index(self, value, start=0, stop=sys.maxsize):
        at, stop, _ = slice(start, stop).indices(self.size)
        for block in self._blocks(at):
            if at >= stop:
                break
            try:
                return at + block.index(value, 0, stop - at)
            except ValueError:
                at += len(block)
        raise ValueError(f"{value!r} is not in list")

    def count(self, value):
        return sum(block.count(value) for block in self._blocks())

    def __eq__(self, other):
        if not isinstance(other, (list, _Lazy)):
            return NotImplemented
        size = len(other) if isinstance(other, list) else other.size
        return self.size == size and all(x == y for x, y in zip(self, other))

    __hash__ = None

    @property
    def cost(self):
        """Bytes that a list of the items takes, but for long items."""
        return self.size * _ITEM

    def check_room(self, first=0):
        """Raises a MemoryError if a list of the items from the first on does not fit."""
        share = 1 - first / self.size if first else 1
        cost, needed = int(self.cost * share), int(self._chars() * share) * (1 if self._text.ascii else 4)
        if cost > contexts.room or needed > contexts.room:
            raise MemoryError(
                f"{self._describe()} are too many for a list, which would take {cost + needed:,} bytes of the "
                f"{contexts.room:,} that it may have here. Iterate: for part in parts; take a part: parts[a:b]; or ask "
                "for less: context.count(s), context.findall(pattern), heapq.nsmallest(n, parts)")

    def __rlm_list__(self):
        """Returns the list where nothing else will do, or raises a MemoryError."""
        self.check_room()
        return list(self)

    def __repr__(self):
        return repr(self.__rlm_list__())

    def __add__(self, other):
        self.check_room()
        return [*self, *other] if isinstance(other, (list, _Lazy)) else NotImplemented

    def __radd__(self, other):
        self.check_room()
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def copy(self):
        return self.__rlm_list__()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return list, (self.__rlm_list__(),)


class _Walk(itertools.chain):
    """Iterates over a lazy sequence at the speed of a list. Code that makes a list of the rest
    asks how long it will be."""

    def __length_hint__(self):
        self.parts.check_room(self.given[0])
        return self.parts.size - self.given[0]


def _caller():
    """Returns the step of the code that calls a method of a sequence."""
    frame = sys._getframe(2)
    return id(frame), frame.f_code, frame.f_lasti


def _read_only(name):
    def change(self, *args, **kwargs):
        self.check_room()
        raise TypeError(f"{self._describe()} are read from the text, and {name} would change them: "
                        "make a list of them, list(parts), and change it")

    return change


def _of_lists(name):
    def method(self, other):
        return getattr(self.__rlm_list__(), name)(other.__rlm_list__() if isinstance(other, _Lazy) else other)

    return method


for _names, _make in ((_READ_ONLY, _read_only), (_OF_LISTS, _of_lists)):
    for _name in _names:
        _method = _make(_name)
        _method.__name__, _method.__qualname__ = _name, f"list.{_name}"
        setattr(_Lazy, _name, _method)


class Chunks(_Lazy):
    """text[0:size], text[size-overlap:...], and so on."""

    __slots__ = ("_text", "_length", "_step", "size")

    def __init__(self, text, size, overlap):
        super().__init__()
        if size <= 0:
            raise ValueError(f"chunk size must be positive, not {size}")
        if not 0 <= overlap < size:
            raise ValueError(f"overlap must be at least 0 and below the chunk size {size}, not {overlap}")
        self._text, self._length, self._step = text, size, size - overlap
        self.size = -(-max(text.size - overlap, 1) // self._step) if text.size else 0

    def again(self):
        """Returns what the chunks are made of."""
        return self._text, self._length, self._length - self._step

    def _items(self, start, end):
        text, length = self._text, self._length
        return [text[i * self._step : i * self._step + length] for i in range(start, end)]

    def _read(self, index, count):
        return self._items(index, index + 1)

    def _blocks(self, first=0):
        for index in range(first, self.size):
            yield self._items(index, index + 1)

    def _chars(self):
        return self.size * self._length

    def _describe(self):
        return f"{self.size:,} chunks of {self._length:,} characters"


class Parts(_Lazy):
    """What split, splitlines and lines give for a long text."""

    __slots__ = ("_text", "_kind", "_sep", "_keepends", "_from", "_size", "_span")

    def __init__(self, text, kind, sep, keepends=False, start=0, size=None):
        super().__init__()
        self._text, self._kind, self._sep, self._keepends = text, kind, sep, keepends
        self._from, self._size, self._span = start, size, None

    def again(self):
        """Returns what the parts are made of."""
        return self._text, self._kind, self._sep, self._keepends, self._from, self._size

    def _ask(self, op, operands=""):
        text = self._text
        head = f"t{op}{text._id},{text._a},{text._b},{self._kind}{operands},"
        return wire.text(head.encode() + self._sep.encode("utf-8", "surrogateescape"))

    @property
    def size(self):
        if self._size is None:
            self._size = int(self._ask("p"))
        return self._size

    def bounds(self, start, end=None):
        """Returns the two offsets of the parts from start to end."""
        end = start + 1 if end is None else end
        low, high = self._ask("l", f",{self._from + start},{self._from + end}").split(",")
        return int(low) - self._text._a, int(high) - self._text._a

    @property
    def can_tally(self):
        """Whether these are all parts of the text, and such as the host can count."""
        if self._keepends or self._from or any("\ud800" <= c <= "\udfff" for c in self._sep):
            return False
        return self._size is None or self._size == int(self._ask("p"))

    def tallies(self):
        """Yields dicts with the numbers of equal parts, in the order of the text. The host counts."""
        text = self._text
        at, sep = text._a, self._sep.encode("utf-8", "surrogateescape")
        while at >= 0:
            head = f"tu{text._id},{at},{text._b},{self._kind},"
            at, counts = marshal.loads(wire.call(head.encode() + sep))
            yield counts

    def _items(self, start, end):
        if end - start > self._LIST:
            return Parts(self._text, self._kind, self._sep, self._keepends, self._from + start, end - start)
        if end <= start:
            return []
        low, high = self.bounds(start, end)
        if high - low > contexts.LAZY:  # a few very long parts
            return [self._text._part(*self._one(i)) for i in range(start, end)]
        if self._keepends:
            high = self._after(end, high)
        items = self._cut(self._text._slice(low, high) if high > low else "")
        # A last empty line is none to splitlines, yet it is a part here.
        return items if len(items) == end - start else [*items, *[""] * (end - start - len(items))]

    def _read(self, index, count):
        """Returns the item at index, and those behind it unless they are long."""
        end = min(index + count, self.size)
        low, high = self.bounds(index, end) if count > 1 else (0, 0)
        return self._items(index, end if high - low <= contexts._STREAM else index + 1)

    def _one(self, index):
        low, high = self.bounds(index)
        return low, self._after(index + 1, high) if self._keepends else high

    def _after(self, end, high):
        """Returns the offset after the line at high, including its line end."""
        if end < self.size:
            return self.bounds(end)[0]
        tail = self._text._slice(high, min(high + 2, self._text.size))
        return high + (2 if tail == "\r\n" else 1 if tail else 0)

    def _cut(self, block):
        if self._kind == "sep":
            return block.split(self._sep)
        if self._kind == "fields":
            return block.split()
        if self._kind == "lines":
            return block.splitlines(self._keepends)
        return cut_lines(block, self._keepends)

    def _blocks(self, first=0):
        """Returns lists of the items from the first on."""
        if first or self._from or self._size is not None and self._size <= self._LIST:
            return self._batches(first)
        if self._kind == "newlines" and not self._keepends:
            return self._stream_lines()
        return self._stream()

    def _batches(self, first):
        for start in range(first, self.size, _AHEAD):
            yield self._items(start, min(self.size, start + _AHEAD))

    def _stream_lines(self):
        """Yields all lines from the beginning, as the host cuts them."""
        source, count = lazy.load("tables").Source(self._text, self._text._a, self._text._b), 0
        limit = sys.maxsize if self._size is None else self._size
        while source.at is not None and source.at < source.end and count < limit:
            start = source.at
            lines, _, is_stuck = source.ask("tn")
            self._span = start, source.end if source.at is None else source.at
            yield lines if len(lines) <= limit - count else lines[: limit - count]
            count += len(lines)
            if is_stuck:  # by a line that is too long for a batch
                self._span = None
                yield from self._batches(count)
                return

    def _stream(self):
        """Yields all parts from the beginning, without an index on the host."""
        text, rest, position, count = self._text, "", 0, 0
        limit = sys.maxsize if self._size is None else self._size
        while position < text.size:
            if len(rest) == contexts.LAZY:  # a part that stays lazy: the host knows where it ends
                yield from self._batches(count)
                return
            # Of a long part as much again as there is, or its time grows with the square.
            more = min(max(contexts._STREAM, len(rest)), contexts.LAZY - len(rest))
            block = rest + text._slice(position, position + more)
            position += len(block) - len(rest)
            parts, rest = self._finished(block) if position < text.size else (self._cut(block), "")
            if limit - count <= len(parts):
                yield parts[: limit - count]
                return
            count += len(parts)
            yield parts

    def _finished(self, block):
        """Returns the parts that end in block, and the incomplete rest."""
        if self._kind == "sep":
            *parts, rest = block.split(self._sep)
            return parts, rest
        if self._kind == "fields":
            keep = len(block) if block[-1].isspace() else len(block) - len(block.rsplit(None, 1)[-1])
        elif self._kind == "newlines":
            keep = block.rfind("\n") + 1
        else:
            keep = len(block) - len(block.splitlines(True)[-1])  # its end may go on: \r and then \n
        return self._cut(block[:keep]), block[keep:]

    def _chars(self):
        low, high = self.bounds(0, self.size) if self.size else (0, 0)
        return high - low

    def _describe(self):
        what = {"sep": f"parts split at {self._sep!r}", "fields": "words"}.get(self._kind, "lines")
        return f"{self.size:,} {what}"


def cut_lines(block, keepends):
    """block as a file's lines: ended by \\n or \\r\\n, nothing else."""
    lines = (block if keepends else block.replace("\r\n", "\n")).split("\n")
    last = lines.pop()
    if keepends:
        lines = [line + "\n" for line in lines]
    if last:
        lines.append(last)
    return lines


class Sections(collections.abc.Sequence):
    """The pages, sheets, messages and the like of a document, in their order; the text itself if it
    is no document. titles has their titles, by which they can be found, too."""

    __slots__ = ("_text", "_ends", "titles")

    def __init__(self, text):
        self._text = text
        is_whole = text._a == 0 and text.size == text._info["chars"]
        found = wire.decode(wire.text(f"td{text._id}")) if is_whole else []
        self.titles = [title for title, _ in found] or [""]
        self._ends = [start for _, start in found] or [0]
        self._ends.append(text.size)

    def __len__(self):
        return len(self.titles)

    def __getitem__(self, key):
        if isinstance(key, str):
            if key not in self.titles:
                raise KeyError(key)
            key = self.titles.index(key)
        if isinstance(key, slice):
            return [self[number] for number in range(*key.indices(len(self)))]
        number = range(len(self))[key]
        part = self._text[self._ends[number]:self._ends[number + 1]]
        return pages.make_part(part, self._text._info, number)

    def __contains__(self, value):
        return value in self.titles or any(value == part for part in self)

    def __repr__(self):
        shown = ", ".join(repr(title) for title in self.titles[:20] if title)
        return f"<{len(self)} parts{': ' if shown else ''}{shown}{', ...' if len(self) > 20 else ''}>"
