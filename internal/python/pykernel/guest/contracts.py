"""schema=: what Python calls a type, as JSON Schema for the host, and back.

to_schema(t) gives the JSON that goes to the host and a function that makes the
real Python value of the JSON that comes back. The host coerces and validates;
here values only get their Python types again. models.py builds its validation
on the same converters.

A converter is a function (value, strict) -> value that raises Mismatch (see converters.py).
Strict ones take a value only as it is; a union tries those first.
"""

import collections.abc
import datetime
import decimal
import json
import re
import types
import typing

import converters
import finish
import wire


def to_schema(t):
    """(JSON text for the host, rebuild) for anything that schema= may be."""
    builder = Builder()
    schema, convert = builder.of(_meant(t))
    if isinstance(schema, str):  # type text that only the host understands
        return json.dumps(schema), converters.as_is
    return json.dumps(builder.document(schema)), lambda value: convert(value, False)


_KEYWORDS = frozenset(
    "type properties items enum const anyOf oneOf allOf not $ref $defs required additionalProperties title description "
    "format pattern minimum maximum prefixItems definitions $schema minLength maxLength minItems maxItems if default".split()
)


def _meant(t):
    """Text and displays of types as types; JSON Schema stays a dict."""
    if isinstance(t, str):
        return _of_text(t)
    if isinstance(t, list) and len(t) == 1 and not isinstance(t[0], (int, float)):
        return typing.List[_hashable(_meant(t[0]))]
    return t


def _of_text(text):
    if text.lstrip().startswith("{"):
        return json.loads(text)
    try:
        found = eval(text, {**vars(typing), "date": datetime.date, "datetime": datetime.datetime, **_named_types()})
    except Exception:
        return Text(text)
    return Text(text) if isinstance(found, (str, int, float, list, tuple)) or callable(found) and not is_type(found) else found


def _named_types():
    """Returns the types that a name in text may mean: the snippets' classes and modules."""
    return {name: value for name, value in (finish.namespace or {}).items() if is_type(value) or isinstance(value, types.ModuleType)}


class Text(str):
    """Type text for the host."""


class _Shape:
    """An object of named types, written as a dict: hashable, so that typing takes it."""

    def __init__(self, fields):
        self.fields = fields


def _hashable(t):
    return _Shape(t) if isinstance(t, dict) else t


def is_type(t):
    return isinstance(t, type) or typing.get_origin(t) is not None or t is None or t is typing.Any or \
        isinstance(t, (typing.TypeVar, _Shape)) or hasattr(t, "__supertype__")


def _is_shape(d):
    """Reports whether a dict names types instead of being JSON Schema."""
    if not d or not all(isinstance(key, str) for key in d):
        return False
    if any(is_type(value) and value is not None for value in d.values()):
        return True
    return not _KEYWORDS.intersection(d) and all(isinstance(value, (str, list, dict)) for value in d.values())


_LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.OrderedDict, collections.defaultdict)
_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))


class Builder:
    """The schemas and converters of one type and its parts."""

    def __init__(self):
        self.definitions = {}
        self.named = {}  # class -> (reference, converter)

    def document(self, schema):
        """The whole document; a definition that is only its root stands there."""
        name = schema.get("$ref", "").rpartition("/")[2] if len(schema) == 1 else ""
        if name in self.definitions and f'"#/$defs/{name}"' not in json.dumps(self.definitions):
            schema = self.definitions.pop(name)
        return {**schema, "$defs": self.definitions} if self.definitions else schema

    def of(self, t):
        """(schema, converter) of a type."""
        if t is decimal.Decimal:
            wire.keeps_literals = True
        try:
            if t in converters.PLAIN:
                schema, convert = converters.PLAIN[t]
                return dict(schema), convert
        except TypeError:
            pass  # not hashable: a dict, or a type with one in it
        if isinstance(t, Text):
            return t, converters.as_is
        if isinstance(t, _Shape):
            t = t.fields
        if isinstance(t, dict):
            return self.shape(t) if _is_shape(t) else (t, converters.as_is)
        if isinstance(t, (list, str)):
            found = _meant(t)
            if isinstance(found, Text):
                raise TypeError(f"schema= cannot be understood: {t!r} names no type")
            return self.of(found)
        if isinstance(t, bool):
            return t, converters.as_is
        return self.generic(t) or self.of_class(t)

    def generic(self, t):
        """Reads the types of typing; returns None for classes."""
        for inner in ("__supertype__", "__value__"):  # NewType, and `type X = ...`
            if hasattr(t, inner) and not isinstance(t, type):
                return self.of(getattr(t, inner))
        if isinstance(t, typing.TypeVar):
            return self.of(t.__bound__ if t.__bound__ is not None else typing.Any)
        if isinstance(t, typing.ForwardRef):
            return self.of(t.__forward_arg__)
        origin, args = typing.get_origin(t), typing.get_args(t)
        if origin is None:
            origin = t if isinstance(t, type) and t in (*_LISTS, *_SETS, *_DICTS, tuple) else None
        if hasattr(t, "__metadata__"):  # Annotated
            return self.annotated(t.__origin__, t.__metadata__)
        if origin is typing.Literal:
            return converters.literal(args)
        if origin in _UNIONS:
            return self.union(args)
        if origin is tuple:
            return self.tuple(args)
        if origin in _LISTS:
            return self.many(args, list, {"type": "array"})
        if origin in _SETS:
            return self.many(args, frozenset if origin is frozenset else set, {"type": "array", "uniqueItems": True})
        if origin in _DICTS:
            return self.mapping(args)
        if getattr(origin, "__name__", "") in ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar") or \
                str(origin).rpartition(".")[2] in ("Required", "NotRequired", "ReadOnly", "Final"):
            return self.of(args[0])
        return self.of_class(origin) if isinstance(origin, type) and origin is not t else None

    def annotated(self, t, notes):
        schema, convert = self.of(t)
        for note in notes:
            if isinstance(note, str):
                schema = converters.beside(schema, {"description": note})
            else:
                schema, convert = converters.constrain(schema, convert, note)
        return schema, convert

    def union(self, args):
        if type(None) in args and len(args) > 1:  # None last, as people write it
            args = [a for a in args if a is not type(None)] + [None]
        parts = [self.of(a) for a in args]
        ways = [convert for _, convert in parts]

        def convert(value, strict):
            first = None
            for way in (True,) if strict else (True, False):
                for each in ways:
                    try:
                        return each(value, way)
                    except converters.Mismatch as error:
                        if first is None or len(error.problems[0][0]) > len(first.problems[0][0]):
                            first = error
            raise first

        return {"anyOf": [schema for schema, _ in parts]}, convert

    def tuple(self, args):
        if not args or args in (((),),):
            return self.many((), tuple, {"type": "array"})
        if len(args) == 2 and args[1] is ...:
            return self.many(args[:1], tuple, {"type": "array"})
        parts = [self.of(a) for a in args]

        def convert(value, strict):
            values = converters.items(value, "a tuple", strict)
            if len(values) != len(parts):
                raise converters.Mismatch(((), f"must have {len(parts)} items, has {len(values)}"))
            return tuple(converters.each(values, [c for _, c in parts], strict))

        count = len(parts)
        return {"type": "array", "prefixItems": [schema for schema, _ in parts], "items": False,
                "minItems": count, "maxItems": count}, convert

    def many(self, args, make, schema):
        if not args:
            return schema, lambda value, strict: make(wire.settle(converters.items(value, f"a {make.__name__}", strict)))
        inner, each = self.of(args[0])

        def convert(value, strict):
            values = converters.items(value, f"a {make.__name__}", strict)
            return make(converters.each(values, [each] * len(values), strict))

        return {**schema, "items": inner}, convert

    def mapping(self, args):
        if not args:
            return {"type": "object"}, lambda value, strict: dict(wire.settle(converters.members(value)))
        names, name = self.of(args[0])
        inner, each = self.of(args[1])
        schema = {"type": "object", "additionalProperties": inner}
        if names.get("type") == "integer":
            schema["propertyNames"] = {"pattern": "^-?[0-9]+$"}
        elif names not in ({"type": "string"}, {}):
            if not (names.get("type") == "string" or "enum" in names or "$ref" in names):
                raise TypeError("schema= cannot be understood: the keys of a dict are str, int, an Enum or a Literal")
            schema["propertyNames"] = names

        def convert(value, strict):
            made = {}
            for key, item in converters.members(value).items():
                try:
                    made[name(key, False)] = each(item, strict)
                except converters.Mismatch as error:
                    raise error.under(key) from None
            return made

        return schema, convert

    def shape(self, fields):
        return self.object({key: Field(key, value) for key, value in fields.items()}, lambda values: values)

    def of_class(self, t):
        if not isinstance(t, type):
            raise TypeError(f"schema= cannot be understood: {t!r} is no type")
        if t in self.named:
            reference, cell = self.named[t]
            return dict(reference), lambda value, strict: cell[0](value, strict)
        reading = classcontracts.reader(t)
        if reading is None:
            raise TypeError(f"schema= cannot be {t.__name__}: give a type such as list[str], a dataclass, a TypedDict, "
                            "an Enum, a pydantic model, or JSON Schema")
        if reading in classcontracts.INLINE:
            return reading(self, t)
        name = re.sub(r"\W", "_", t.__name__)
        while name in self.definitions:
            name += "_"
        self.definitions[name] = None  # taken
        reference, cell = {"$ref": f"#/$defs/{name}"}, [None]
        self.named[t] = reference, cell
        self.definitions[name], cell[0] = reading(self, t)
        return dict(reference), lambda value, strict: cell[0](value, strict)

    def object(self, fields, make, extra=None):
        """An object of named fields; make gets the dict of those that are there."""
        parts = {name: self.field(field) for name, field in fields.items()}
        schema = {"type": "object", "properties": {fields[name].key: schema for name, (schema, _) in parts.items()},
                  "required": [field.key for field in fields.values() if field.required]}

        def convert(value, strict):
            value, made, problems = converters.members(value), {}, []
            for name, (_, each) in parts.items():
                key = fields[name].key
                if key not in value:
                    key = name
                if key in value:
                    try:
                        made[name] = each(value[key], strict)
                    except converters.Mismatch as error:
                        problems += error.under(key).problems
                elif fields[name].required:
                    problems.append(((fields[name].key,), "is missing"))
            unknown = [key for key in value if key not in fields and key not in schema["properties"]]
            if unknown and (strict or extra == "forbid"):
                problems += [((key,), "is not a field") for key in unknown]
            if problems:
                raise converters.Mismatch(*problems)
            if extra == "allow":
                made.update((key, wire.settle(value[key])) for key in unknown)
            return make(made)

        if extra == "forbid":
            schema["additionalProperties"] = False
        return schema, convert

    def field(self, field):
        schema, convert = self.of(field.type)
        for note in field.notes:
            schema, convert = converters.constrain(schema, convert, note)
        return schema, convert


class Field:
    """A field of an object: its type, and notes with bounds and a description."""

    def __init__(self, name, type, required=True, notes=(), key=None):
        self.type, self.required, self.notes, self.key = type, required, notes, key or name


import classcontracts  # it needs what stands above
