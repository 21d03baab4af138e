"""Values of single types: converters of scalars, bounds, and the parts of lists
and dicts. A converter is a function (value, strict) -> value that raises Mismatch;
see contracts.py."""

import collections.abc
import datetime
import decimal
import enum
import re
import types
import typing
import uuid

import wire


class Mismatch(ValueError):
    """A value of the wrong type: [(path, message)], a path as a tuple."""

    def __init__(self, *problems):
        super().__init__("; ".join(f"{where(path)}: {message}" for path, message in problems))
        self.problems = list(problems)

    def under(self, step):
        return Mismatch(*(((step, *path), message) for path, message in self.problems))


def where(path):
    """Returns a path as the host writes it."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def as_is(value, strict=False):
    return wire.settle(value)


def _scalar(*accepts):
    def wrap(function):
        def convert(value, strict):
            if type(value) is wire.Literal:
                value = float(value)
            if type(value) in accepts:
                return value
            if not strict:
                made = function(value)
                if made is not None:
                    return made
            raise Mismatch(((), f"must be {function.__doc__}, is {kind_of(value)}"))

        return convert

    return wrap


def kind_of(value):
    return {bool: "a bool", int: "an int", float: "a float", wire.Literal: "a float", str: "a str", list: "a list", dict: "a dict",
            type(None): "None"}.get(type(value), f"a {type(value).__name__}")


@_scalar(bool)
def _bool(value):
    """a bool"""
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
    return bool(value) if type(value) in (int, float) and value in (0, 1) else None


@_scalar(int)
def _int(value):
    """an int"""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value  # a subclass, such as a member of an IntEnum
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,400}\s*", value):
        return int(value)
    return None


@_scalar(float)
def _float(value):
    """a float"""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float, decimal.Decimal)):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _strict_float(value, strict):
    return float(value) if type(value) is int else _float(value, strict)  # JSON has one kind of number


@_scalar(str)
def _str(value):
    """a str"""
    return value if isinstance(value, str) else None


@_scalar(type(None))
def _none(value):
    """None"""


def _parsed(cls, what, read):
    def convert(value, strict):
        if isinstance(value, cls) and not (cls is datetime.date and isinstance(value, datetime.datetime)):
            return value
        try:
            return read(value)
        except (TypeError, ValueError, ArithmeticError):
            raise Mismatch(((), f"must be {what}, is {kind_of(value)}")) from None

    return convert


def _iso(cls):
    return lambda text: cls.fromisoformat(re.sub(r"[zZ]$", "+00:00", text.strip()))


def _number_text(value):
    if isinstance(value, bool):
        raise TypeError
    return decimal.Decimal(value.text if type(value) is wire.Literal else str(value))


PLAIN = {
    bool: ({"type": "boolean"}, _bool),
    int: ({"type": "integer"}, _int),
    float: ({"type": "number"}, _strict_float),
    str: ({"type": "string"}, _str),
    None: ({"type": "null"}, _none),
    type(None): ({"type": "null"}, _none),
    typing.Any: ({}, as_is),
    object: ({}, as_is),
    datetime.datetime: ({"type": "string", "format": "date-time"}, _parsed(datetime.datetime, "a date and time", _iso(datetime.datetime))),
    datetime.date: ({"type": "string", "format": "date"}, _parsed(datetime.date, "a date", _iso(datetime.date))),
    datetime.time: ({"type": "string", "format": "time"}, _parsed(datetime.time, "a time", _iso(datetime.time))),
    datetime.timedelta: ({"type": "number", "description": "seconds"},
                         _parsed(datetime.timedelta, "a number of seconds", lambda v: datetime.timedelta(seconds=v))),
    decimal.Decimal: ({"type": "number"}, _parsed(decimal.Decimal, "a number", _number_text)),
    uuid.UUID: ({"type": "string", "format": "uuid"}, _parsed(uuid.UUID, "a UUID", uuid.UUID)),
}

_BOUNDS = (
    ("ge", "minimum", lambda v, b: v >= b, "at least"), ("gt", "exclusiveMinimum", lambda v, b: v > b, "greater than"),
    ("le", "maximum", lambda v, b: v <= b, "at most"), ("lt", "exclusiveMaximum", lambda v, b: v < b, "less than"),
    ("multiple_of", "multipleOf", lambda v, b: v % b == 0, "a multiple of"),
)
_COUNTS = {"array": "Items", "object": "Properties", "string": "Length"}


def beside(schema, more):
    """Adds keywords to a schema; 2020-12 allows them beside a reference."""
    return {**schema, **more} if isinstance(schema, dict) else schema


def constrain(schema, convert, note):
    """Schema and converter with the bounds that a note has: pydantic's Field, or
    anything with the same attributes."""
    more, checks = {}, []
    get = lambda name: getattr(note, name, None)
    for name, keyword, holds, words in _BOUNDS:
        bound = get(name)
        if isinstance(bound, (int, float, decimal.Decimal)):
            more[keyword] = bound if isinstance(bound, (int, float)) else float(bound)
            checks.append((lambda v, h=holds, b=bound: h(v, b), f"must be {words} {bound}"))
    for name, word, holds, words in (("min_length", "min", lambda v, b: len(v) >= b, "at least"),
                                     ("max_length", "max", lambda v, b: len(v) <= b, "at most")):
        bound = get(name)
        if isinstance(bound, int):
            for part in schema.get("anyOf", [schema]):
                if part.get("type") in _COUNTS:
                    more[word + _COUNTS[part["type"]]] = bound
            checks.append((lambda v, h=holds, b=bound: h(v, b), f"must have a length of {words} {bound}"))
    pattern = get("pattern")
    if isinstance(pattern, str):
        more["pattern"] = pattern
        checks.append((re.compile(pattern).search, f"must match the pattern {pattern}"))
    for name in ("title", "description", "examples"):
        if get(name) and not callable(get(name)):
            more[name] = get(name)
    extra = get("json_schema_extra")
    if isinstance(extra, dict):
        more.update(extra)
    return beside(schema, more), _checked(convert, checks) if checks else convert


def _checked(convert, checks):
    def check(value, strict):
        made = convert(value, strict)
        for holds, message in checks if made is not None else ():
            try:
                fine = holds(made)
            except TypeError:
                continue  # a bound on another member of a union
            if not fine:
                raise Mismatch(((), message))
        return made

    return check


def literal(args):
    values = [a.value if isinstance(a, enum.Enum) else a for a in args]

    def convert(value, strict):
        value = wire.settle(value)
        for each, plain in zip(args, values):
            if each is value or type(value) is type(plain) and value == plain:
                return each
        if isinstance(value, str) and not strict:
            same = [a for a, plain in zip(args, values) if str(plain).lower() == value.strip().lower()]
            if len(same) == 1:
                return same[0]
        raise Mismatch(((), f"must be one of {', '.join(map(repr, values))}"))

    return {"enum": values}, convert


def items(value, what, strict):
    if isinstance(value, (list, tuple)) or isinstance(value, (set, frozenset, collections.abc.KeysView, collections.abc.ValuesView)):
        return list(value)
    if not strict and isinstance(value, types.GeneratorType):
        return list(value)
    raise Mismatch(((), f"must be {what}, is {kind_of(value)}"))


def each(values, converters, strict):
    made, problems = [], []
    for i, (value, convert) in enumerate(zip(values, converters)):
        try:
            made.append(convert(value, strict))
        except Mismatch as error:
            problems += error.under(i).problems
    if problems:
        raise Mismatch(*problems)
    return made


def members(value):
    if isinstance(value, collections.abc.Mapping):
        return value
    raise Mismatch(((), f"must be a dict, is {kind_of(value)}"))
