"""What context.table().describe() tells of each column, as SUMMARIZE of DuckDB and describe of pandas do.

It reads the rows once, some at a time, and keeps a bounded number of values."""

import array
import itertools
import json
import math
import operator
import random
import re
import struct

_SOME = 2_000  # rows at a time
_EXACT = 100_000  # distinct values that are counted exactly
_HASHES = 4_096  # of a column with more: the smallest hashes of its values
_KEPT = 1_000_000  # numbers from which the quartiles are found; of more, a random choice
_LONGEST = 300  # characters; longer integers become floats
_LARGEST = 1 << 999  # larger integers of JSON are no numbers

_NUMBER = r"\s*+[-+]?+(?:(?:0|[1-9]\d*+)(\.\d*+)?+|(\.\d++))([eE][-+]?\d++)?+\s*+"
_number = re.compile(_NUMBER, re.ASCII).fullmatch
# Of texts between zero bytes: whether all may be numbers without exponents, whether some are numbers, and
# whether some begin with a zero, as codes do.
_may_be_numbers = re.compile(r"[\d+.\s\0-]*+", re.ASCII).fullmatch
_has_number = re.compile(rf"\0{_NUMBER}(?=\0)", re.ASCII).search
_has_zero = re.compile(r"[\0\s+-]0\d", re.ASCII).search


def _read(value):
    """Returns the number that a text of CSV is, or None. 007 is a text, as for sql."""
    match = _number(value)
    if not match:
        return None
    if match.lastindex is None and len(value) < _LONGEST:
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else None


def _read_all(texts, different):
    """Returns the numbers among texts of CSV, given as a list and as a set.

    To look at all of them at once takes less time, unless few of them differ."""
    joined = "\0".join(["", *texts, ""]) if 4 * len(different) > len(texts) else "\0"
    if joined.count("\0") == len(texts) + 1:
        if _may_be_numbers(joined) and not _has_zero(joined) and max(map(len, texts)) < _LONGEST:
            try:
                if "." not in joined:
                    return list(map(int, texts))
                return [float(text) if "." in text else int(text) for text in texts]
            except ValueError:
                pass  # some are none, such as dates
        if not _has_number(joined):
            return []
    known = {text: _read(text) for text in different}
    if set(known.values()) == {None}:
        return []
    return [number for number in map(known.get, texts) if number is not None]


_pack = struct.Struct("d").pack
_encode = json.JSONEncoder(sort_keys=True).encode


def _make_key(value):
    """Returns what is equal if the JSON of values is."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is float:
        return _pack(value)
    return (value,) if kind is bool else (_encode(value),)


class _Distinct:
    """Counts different values."""

    def __init__(self):
        self._values, self._below = set(), None  # of the values, or of their hashes below a bound

    def add(self, values):
        if self._below is not None:
            values = (code for code in map(_spread, values) if code < self._below)
        self._values.update(values)
        if self._below is None and len(self._values) > _EXACT:
            self._values, self._below = set(map(_spread, self._values)), 1 << 64
        if self._below is not None and len(self._values) > 2 * _HASHES:
            self._values = set(sorted(self._values)[:_HASHES])
            self._below = max(self._values) + 1

    def count(self):
        """Returns the number, and whether it is exact."""
        if self._below is None:
            return len(self._values), True
        return round((len(self._values) - 1) * (1 << 64) / self._below), False


def _spread(value):
    """Returns a hash of 64 bits whose values are spread evenly."""
    code = hash(("", value)) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
    code = (code ^ code >> 32) * 0xD6E8FEB86659FD93 & (1 << 64) - 1
    return code ^ code >> 32


class _Column:
    """What is known about a column."""

    def __init__(self):
        self.count = self.nulls = self.numbers = 0
        self.kinds = set()
        self.least = self.most = self.first = self.last = None  # of the numbers, of the texts
        self._distinct, self._kept = _Distinct(), array.array("d")
        self._whole, self._parts = 0, []  # the sum of integers; floats that sum up to that of the others
        self._mean = self._squares = 0.0

    def add(self, values, is_csv):
        if is_csv:
            present, kinds = list(filter(None, values)), {str}
        else:
            present = [value for value in values
                       if value is not None and (type(value) is not float or math.isfinite(value))]
            kinds = set(map(type, present))
        self.nulls += len(values) - len(present)
        self.count += len(present)
        if not present:
            return

        different = set(present) if kinds <= {str, int} else set(map(_make_key, present))
        self._distinct.add(different)
        numbers, texts = self._sort(present, different, kinds, is_csv)
        if numbers:
            self._add_numbers(numbers)
        if len(numbers) < len(present) and texts:
            self.kinds.add("TEXT")
        if texts:
            first, last = min(texts), max(texts)
            self.first = first if self.first is None else min(self.first, first)
            self.last = last if self.last is None else max(self.last, last)

    def _sort(self, present, different, kinds, is_csv):
        """Returns the numbers and the different texts among values of some types. All values of CSV are texts, too."""
        if is_csv:
            return _read_all(present, different), different
        if kinds == {str}:
            return [], different
        if kinds <= {int, float} and -_LARGEST < min(present) and max(present) < _LARGEST:
            return present, []

        numbers, texts = [], []
        for value in present:
            if isinstance(value, bool):
                self.kinds.add("BOOLEAN")
            elif isinstance(value, float) or isinstance(value, int) and -_LARGEST < value < _LARGEST:
                numbers.append(value)
            elif isinstance(value, str):
                texts.append(value)
            else:
                self.kinds.add("JSON")
        return numbers, texts

    def _add_numbers(self, numbers):
        before, new = self.numbers, len(numbers)
        self.numbers += new
        least, most = min(numbers), max(numbers)
        self.least = least if self.least is None else min(self.least, least)
        self.most = most if self.most is None else max(self.most, most)

        kinds = set(map(type, numbers))
        floats = list(map(float, numbers)) if int in kinds else numbers
        if int in kinds:
            self.kinds.add("INTEGER")
            self._whole += sum(number for number in numbers if type(number) is int) if len(kinds) > 1 else sum(numbers)
        if float in kinds:
            self.kinds.add("REAL")
            real = [number for number in numbers if type(number) is float] if len(kinds) > 1 else numbers
            self._parts.append(math.fsum(real))
            if len(self._parts) > _SOME:
                total = math.fsum(self._parts)
                self._parts = [total, math.fsum([*self._parts, -total])]

        mean = math.fsum(floats) / new
        squares = math.fsum([(number - mean) * (number - mean) for number in floats])
        apart = mean - self._mean
        self._squares += squares + apart * apart * before * new / self.numbers
        self._mean += apart * new / self.numbers
        self._keep(floats, before)

    def _keep(self, numbers, before):
        room = _KEPT - len(self._kept)
        self._kept.extend(numbers[:room])
        for place, number in enumerate(numbers[room:] if room < len(numbers) else (), before + max(room, 0)):
            other = random.randrange(place + 1)
            if other < _KEPT:
                self._kept[other] = number

    def describe(self, name):
        is_number = bool(self.numbers) and self.kinds <= {"INTEGER", "REAL"}
        distinct, is_exact = self._distinct.count()
        row = {"column": name, "type": self._type(is_number), "count": self.count, "nulls": self.nulls,
               "distinct": distinct, "min": self.first, "max": self.last, "numbers": self.numbers,
               "mean": None, "std": None, "q25": None, "q50": None, "q75": None, "approximate": []}
        if not is_exact:
            row["approximate"].append("distinct")
        if is_number:
            row |= {"min": self.least, "max": self.most, **self._describe_numbers()}
            if self.numbers > _KEPT:
                row["approximate"] += ["q25", "q50", "q75"]
        return row

    def _type(self, is_number):
        if is_number:
            return "REAL" if "REAL" in self.kinds else "INTEGER"
        kinds = self.kinds - {"INTEGER", "REAL"}
        return kinds.pop() if len(kinds) == 1 and (kinds == {"TEXT"} or not self.numbers) else "JSON" if kinds else None

    def _describe_numbers(self):
        rest = math.fsum(self._parts)
        mean = self._whole / self.numbers if not rest else math.fsum([self._whole, *self._parts]) / self.numbers
        std = math.sqrt(self._squares / (self.numbers - 1)) if self.numbers > 1 else None
        kept = sorted(self._kept)
        return {"mean": mean, "std": std, **{f"q{part}": _quantile(kept, part) for part in (25, 50, 75)}}


def _quantile(kept, part):
    """Returns a quantile as pandas does: between two values, on the line that joins them."""
    place = (len(kept) - 1) * part / 100
    low = math.floor(place)
    high = min(low + 1, len(kept) - 1)
    return kept[low] + (kept[high] - kept[low]) * (place - low)


def describe(rows, names, is_csv):
    """Returns a dict for each column of rows that are dicts."""
    columns = {name: _Column() for name in names or ()}
    done = 0
    while some := list(itertools.islice(rows, _SOME)):
        for name in dict.fromkeys(itertools.chain.from_iterable(some)):
            if name not in columns and name is not None:
                columns[name] = _Column()
                columns[name].nulls = done
        for name, column in columns.items():
            try:
                values = list(map(operator.itemgetter(name), some))
            except KeyError:
                values = [row.get(name) for row in some]
            column.add(values, is_csv)
        done += len(some)
    return [column.describe(name) for name, column in columns.items()]
