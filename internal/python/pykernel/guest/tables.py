"""The rows of a text that is a table: context.json_lines(), context.table(), and csv's readers
over context.lines().

The host decodes the rows, many at a time, and writes them as marshal does. It leaves to Python
what is rare or wrong, so that the results and exceptions are Python's own."""

import csv
import io
import itertools
import json
import marshal
import operator
import re

import binaries
import contexts
import environment
import lazy
import parts
import wire

_ALL = 1 << 31
_MOST = 8 << 20  # characters of a field that the host reads
_FIRST = 100  # rows that Python decodes for the names of the columns
_stock_reader, _stock_dicts = csv.reader, csv.DictReader


class _Rows(itertools.chain):
    """Rows, one after another. The iteration itself is C code."""

    def _begin(self, source):
        self._source = source
        return self

    @property
    def line_num(self):
        """The number of the last line of the row that was read last."""
        return self._source.line_num


class Rows(_Rows):
    """The rows of a table as dicts. The names of the columns are in columns."""

    @property
    def columns(self):
        """The names of the columns; for JSON Lines, those of the first rows."""
        return self._source.columns

    @property
    def skipped(self):
        """How many lines were not JSON, with errors="skip"."""
        return self._source.skipped

    def describe(self):
        """Reads the rows, and returns a dict for each column: its type, count, nulls, distinct, min, max, and
        of numbers the mean, std and quartiles."""
        return lazy.load("described").describe(self, self.columns, isinstance(self._source, _CSV))

    def __repr__(self):
        return f"<rows of {self._source.text.name!r}>"


class Source:
    """Gives the rows or the lines of a part of a text in blocks."""

    skipped = 0

    def __init__(self, text, start, end):
        self.text, self.at, self.end = text, start, end
        self.line, self.ends = 1, None  # of the next block: its first line, and the last line of each row
        self._before, self._block, self._rows = 0, (), iter(())  # what was handed out last

    def ask(self, op, operands=""):
        """Returns the next rows. Sets at to None if there are no more."""
        head = f"{op}{self.text._id},{self.at},{self.end},{self.line},{operands}"
        rows, self.line, more, is_stuck, at = marshal.loads(wire.call(head.encode("utf-8", "surrogateescape")))
        self.at = at if at < self.end or is_stuck else None
        return rows, more, is_stuck

    def hand_out(self, rows, before, ends=None):
        """Returns an iterator over a block of rows that follow the line before."""
        self._before, self.ends, self._block, self._rows = before, ends, rows, iter(rows)
        return self._rows

    @property
    def line_num(self):
        done = len(self._block) - operator.length_hint(self._rows)
        if done and self.ends:
            return self.ends[done - 1]
        return self._before + done


class _JSONLines(Source):
    known = None  # the names of the columns, if the file has them or the first rows were read

    def __init__(self, text, skip):
        super().__init__(text, text._a, text._b)
        self._skip, self._ahead = skip, None

    def _read(self):
        """Returns the next rows, and the lines that are still to be decoded."""
        if contexts.is_alone():
            lines = enumerate(contexts.cut_lines(str(self.text).removeprefix("\ufeff"), False), 1)
            odd = [[n, *row] for n, row in enumerate(row for row in lines if row[1].strip(" \t\r\n"))]
            self.at = None
            return [None] * len(odd), odd
        rows, odd, _ = self.ask("tj")
        return rows, odd

    def _read_first(self):
        """Reads the first rows, and the names of the columns with them."""
        if self.at is None or self.at >= self.end:
            return
        rows, odd = self._ahead = self._read()
        first = [row for row in rows if isinstance(row, dict)]
        for _, _, source in odd[:_FIRST]:
            try:
                row = json.loads(source)
            except (ValueError, RecursionError):
                continue  # the iteration raises it
            if isinstance(row, dict):
                first.append(row)
        self.known = list(dict.fromkeys(key for row in first for key in row))

    def blocks(self):
        if self.known is None:
            self._read_first()
        while self._ahead or self.at is not None and self.at < self.end:
            (rows, odd), self._ahead = self._ahead or self._read(), None
            start = 0
            for place, line, source in odd:
                yield rows[start:place]
                yield from self._decode(line, source)
                start = place + 1
            yield rows[start:] if start else rows

    def _decode(self, line, source):
        """Yields a block with the row of one line."""
        try:
            row = json.loads(source)
        except ValueError as error:
            if not self._skip:
                error.add_note(f'in line {line} of {self.text.name}; json_lines(errors="skip") leaves such lines out')
                raise
            self.skipped += 1
        else:
            yield [row]

    @property
    def columns(self):
        if self.known is None:
            self._read_first()
        return list(self.known or ())


def json_lines(text, errors="raise"):
    """Returns the rows of JSON Lines."""
    if errors not in ("raise", "skip"):
        raise ValueError(f'errors must be "raise" or "skip", not {errors!r}')
    source = _JSONLines(text, errors == "skip")
    return Rows.from_iterable(source.blocks())._begin(source)


class Ahead(Source):
    """What json.loads gives for the lines of a loop, before the loop asks."""

    def __init__(self, text, start):
        super().__init__(text, start, text._b)
        self._next, self._values = start, []

    def take(self, lines, text, span):
        """Returns the values of the lines that a span of a text has, none if the host skips some of them."""
        if text is not self.text or span[0] != self._next or not lines or lines[0].startswith("\ufeff"):
            return ()
        self._next = span[1]
        while len(self._values) < len(lines):
            before = self.line
            if self.at is None:
                return ()
            values, odd, _ = self.ask("tj")
            if self.line - before != len(values):  # it leaves out empty lines
                self.at = None
                return ()
            for place, _, _ in odd:
                values[place] = parts.ABSENT
            self._values += values
        values, self._values = self._values[: len(lines)], self._values[len(lines) :]
        return values


class _CSV(Source):
    """The rows of CSV, as lists."""

    _kind = "l"

    def __init__(self, text, start, end, dialect, limit=None):
        super().__init__(text, start, end)
        self.dialect, self._limit = dialect, limit
        self.special = dialect.quotechar + "   "  # of the host's dialect: the quote, the escape, the comment, spaces

    def read(self, most=_ALL):
        """Returns the next rows, and the last line of each if some have several; None for the rows
        if the host cannot read the next one."""
        limit = min(csv.field_size_limit(), _MOST) if self._limit is None else self._limit
        dialect = self.dialect.delimiter + self.special
        rows, ends, is_stuck = self.ask("tv", f"{most},{limit},{dialect}{self._kind}")
        return (None if is_stuck and not rows else rows), ends

    def blocks(self):
        while self.at is not None and self.at < self.end:
            before = self.line - 1
            rows, ends = self.read()
            if rows is None:
                yield from self._go_on(before)
                return
            yield self.hand_out(rows, before, ends)

    def _go_on(self, before):
        """Yields the rest by the stock reader, which knows what is wrong with it."""
        reader = self.stock_reader(_file_lines(self.text, self.at, self.end))
        self.at = None
        for row in reader:
            line = before + reader.line_num
            yield self.hand_out([row], line - 1, [line])

    def stock_reader(self, lines):
        return _stock_reader(lines, self.dialect)


def _file_lines(text, at, end):
    """Yields lines as a file does that was opened with newline=""."""
    rest = ""
    while at < end:
        if len(rest) > contexts._WHOLE:
            raise contexts._too_long("a row", text)
        size = min(max(contexts._STREAM, len(rest)), end - at)
        *lines, rest = io.StringIO(rest + text._slice(at - text._a, at - text._a + size), newline="")
        at += size
        yield from lines
    if rest:
        yield from io.StringIO(rest, newline="")


class _Dicts(_CSV):
    """The rows of CSV, as dicts."""

    columns = None

    def set_columns(self, columns):
        self.columns = columns
        self._kind = "d" + "\0".join(columns)


class _Table(_Dicts):
    """A whole text. No other reader could read a row that is too long."""

    values = None  # how to write values; None as they are

    def read(self, most=_ALL):
        rows, ends = super().read(most)
        return (self.values.clean(rows) if rows and self.values else rows), ends

    def _go_on(self, before):
        raise csv.Error(f"the row in line {before + 1} has more than {_MOST:,} bytes or 100,000 fields: choose another "
                        "delimiter, or read context.lines()")


class _Values:
    """Writes the values of rows as Python does: a missing one as None, and a number with a point."""

    def __init__(self, nulls, decimal, thousands):
        self._nulls = frozenset(nulls)
        point, group = re.escape(decimal or "."), re.escape(thousands)
        whole = rf"\d{{1,3}}(?:{group}\d{{3}})+|\d+" if thousands else r"\d+"
        pattern = rf"\s*[-+]?(?:(?:{whole})(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?\s*"
        self._is_number = re.compile(pattern, re.ASCII).fullmatch if decimal or thousands else None
        self._decimal, self._thousands = decimal, thousands

    def _clean(self, value):
        if value in self._nulls:
            return None
        if self._is_number and self._is_number(value):
            if self._thousands:
                value = value.replace(self._thousands, "")
            if self._decimal:
                value = value.replace(self._decimal, ".")
        return value

    def clean(self, rows):
        """Changes rows, and returns them."""
        for row in rows:
            for key, value in row.items():
                if type(value) is str:
                    row[key] = self._clean(value)
                elif type(value) is list:
                    row[key] = [self._clean(one) for one in value]
        return rows


def _list_options(delimiter, options):
    """Returns the options as the host reads them."""
    if delimiter is not None:
        options = {"delim": delimiter, **options}
    given = []
    for name, value in options.items():
        if value is None and name != "header":
            continue
        for one in value if isinstance(value, (list, tuple, set, frozenset)) else [value]:
            if isinstance(one, bool) and name == "header":
                one = "true" if one else "false"
            elif one is None and name == "header":
                one = "false"  # as in pandas
            elif type(one) is int and name in ("skip", "skiprows", "header"):
                one = str(one)
            if not isinstance(one, str) or "\0" in one:
                raise TypeError(f"the option {name} of a table cannot be {one!r}")
            given += [name, one]
    return "\0".join(given)


def table(text, name=None, delimiter=None, **options):
    """Returns the rows of a table as dicts."""
    tables = names(text)
    is_plain = delimiter is None and not options
    if tables and is_plain:
        return _open(text, _choose(text, tables, name))
    if name is not None:
        raise KeyError(f"{text.name} has no tables with names; rows of CSV: table(delimiter=',')")
    if is_plain and text.type == "jsonl":
        return json_lines(text)
    if is_plain and text.type != "csv":
        raise TypeError(f"{text.name} seems to be {text.type}, not a table; for CSV, name the delimiter: "
                        'table(delimiter=",")')
    found, columns, line, first, special, *values = _find_layout(text, delimiter, options)
    dialect = _stock_reader((), delimiter=found, quotechar=special[0]).dialect
    source = _Table(text, first, text._b, dialect, _MOST)
    source.special = special
    if any(values):
        source.values = _Values(*values)
    source.set_columns(columns)
    source.line = line
    return Rows.from_iterable(source.blocks())._begin(source)


def names(text):
    """Returns the names of the tables of a file; of a part of its text, none."""
    is_whole = isinstance(text, binaries.File) or text._a == 0 and text.size == text._info["chars"]
    return text._info.get("tables", []) if is_whole else []


def _choose(text, tables, name):
    if name is None:
        return 0
    if isinstance(name, str) and name in tables:
        return tables.index(name)
    raise KeyError(f"{text.name} has no table {name!r}; its tables are: {', '.join(map(repr, tables[:50]))}")


def _open(text, number):
    """Returns the rows of a table that the host turns into JSON Lines."""
    info, columns = wire.decode(wire.text(f"to{text._id},{number}"))
    source = _JSONLines(contexts.LazyText(info, 0, info["chars"]), False)
    source.known = columns
    return Rows.from_iterable(source.blocks())._begin(source)


def _find_layout(text, delimiter, options):
    if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()):
        raise TypeError(f"a delimiter is one character of ASCII, not {delimiter!r}")
    head = f"tw{text._id},{text._a},{text._b},{_list_options(delimiter, options)}"
    return marshal.loads(wire.call(head.encode("utf-8", "surrogateescape")))


# csv.reader and csv.DictReader.

class Lines(list):
    """The lines of a short text."""

    __slots__ = ("_text",)

    def __init__(self, text, keepends):
        super().__init__(contexts.cut_lines(text, keepends))
        self._text = text

    def __reduce_ex__(self, protocol):
        return list, (list(self),)


Lines.__name__ = Lines.__qualname__ = "list"
Lines.__module__ = "builtins"


def _span(lines):
    """Returns the text of lines, and where in it they begin and end; None for all else."""
    kind = type(lines)
    if contexts.is_alone():
        return None
    if kind is Lines:
        return (lines._text, 0, lines._text._b) if len(lines) else None
    if kind is not parts.Parts or lines._kind != "newlines":
        return None
    text = lines._text
    if not lines._from and lines._size is None:
        return text, text._a, text._b
    if not lines.size:
        return None
    start, end = lines.bounds(0, lines.size)
    return text, text._a + start, text._a + end


def _is_plain(dialect):
    """Reports whether the host reads a dialect as csv does."""
    return (
        dialect.quotechar is not None and dialect.delimiter.isascii() and dialect.quotechar.isascii()
        and dialect.escapechar is None and dialect.doublequote and not dialect.strict
        and not dialect.skipinitialspace and dialect.quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        and dialect.delimiter not in "\r\n\0" and dialect.quotechar not in "\r\n\0"
        and dialect.delimiter != dialect.quotechar
    )


def _reads_here(csvfile):
    """Returns what the stock reader gets in place of lines whose ends were cut."""
    if type(csvfile) is Lines:
        return io.StringIO(csvfile._text, newline="")
    span = _span(csvfile)
    return csvfile if span is None else _file_lines(*span)


class _Reader(_Rows):
    """A csv.reader over the lines of a context."""

    @property
    def dialect(self):
        return self._source.dialect


def reader(csvfile, *args, **kwargs):
    span = _span(csvfile)
    if span is None:
        return _stock_reader(csvfile, *args, **kwargs)
    dialect = _stock_reader((), *args, **kwargs).dialect
    if not _is_plain(dialect):
        return _stock_reader(_reads_here(csvfile), *args, **kwargs)
    source = _CSV(*span, dialect)
    return _Reader.from_iterable(source.blocks())._begin(source)


reader.__doc__ = _stock_reader.__doc__
reader.__module__ = "csv"


class _DictRows(_Rows):
    """A csv.DictReader over the lines of a context."""

    restkey = restval = None

    @property
    def reader(self):
        return self

    @property
    def dialect(self):
        return self._source.name

    @property
    def fieldnames(self):
        """The names of the columns."""
        return self._source.find_names()

    @fieldnames.setter
    def fieldnames(self, names):
        if self._source.has_begun:
            raise AttributeError("set fieldnames before the first row is read")
        self._source.names = names


class _DictSource(_Dicts):
    """Reads the names of the columns from the first row, when they are needed."""

    has_begun = False

    def __init__(self, span, dialect, name, names):
        super().__init__(*span, dialect)
        self.name, self.names = name, names

    def find_names(self):
        if self.names is None and self.at is not None and self.at < self.end:
            kind, self._kind = self._kind, "l"
            rows, _ = self.read(1)
            self._kind = kind
            self.names = rows[0] if rows else next(self.stock_reader(_file_lines(self.text, self.at, self.end)).reader)
            self._before = self.line - 1
        return self.names

    def blocks(self):
        names = self.find_names()
        self.has_begun = True
        if names is None or self.at is None:
            return
        if _are_plain(names):
            self.set_columns(names)
            yield from super().blocks()
        else:
            yield from self._go_on(self.line - 1)

    def stock_reader(self, lines):
        return _stock_dicts(lines, self.names, dialect=self.dialect)


def _are_plain(names):
    """Reports whether the host can make dicts with such keys."""
    if not isinstance(names, (list, tuple)) or not 0 < len(names) <= 10_000 or set(map(type, names)) != {str}:
        return False
    joined = "".join(names)
    return "\0" not in joined and not any("\ud800" <= c < "\udc80" or "\udcff" < c <= "\udfff" for c in joined)


def _make_dicts(f, fieldnames=None, restkey=None, restval=None, dialect="excel", *args, **kwargs):
    """Makes a csv.DictReader."""
    span = _span(f)
    if span is None:
        return _stock_dicts(f, fieldnames, restkey, restval, dialect, *args, **kwargs)
    found = _stock_reader((), dialect, *args, **kwargs).dialect
    if restkey is not None or restval is not None or not _is_plain(found):
        return _stock_dicts(_reads_here(f), fieldnames, restkey, restval, dialect, *args, **kwargs)
    if fieldnames is not None and iter(fieldnames) is fieldnames:
        fieldnames = list(fieldnames)
    source = _DictSource(span, found, dialect, fieldnames)
    return _DictRows.from_iterable(source.blocks())._begin(source)


class _DictReaderMeta(type):
    def __call__(cls, *args, **kwargs):
        return _make_dicts(*args, **kwargs) if cls is DictReader else super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance):
        if cls is DictReader:
            return isinstance(instance, (_stock_dicts, _DictRows))
        return super().__instancecheck__(instance)


class DictReader(_stock_dicts, metaclass=_DictReaderMeta):
    __module__ = "csv"
    __doc__ = _stock_dicts.__doc__


def install():
    """Replaces the readers of csv."""
    if csv.reader is not reader:
        csv.reader, csv.DictReader = reader, DictReader
        environment.keep("csv")
