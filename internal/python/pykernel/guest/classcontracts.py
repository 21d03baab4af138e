"""The classes that schema= understands: how each becomes JSON Schema, and an
instance again. A reader is a function (builder, class) -> (schema, converter)."""

import dataclasses
import enum
import sys
import typing

import contracts
import converters
import finish
import wire

Field, Mismatch = contracts.Field, converters.Mismatch


def reader(t):
    """Returns the reader of a class, or None."""
    if issubclass(t, enum.Enum):
        return _enum
    if hasattr(t, "__rlm_model__"):
        return _model
    if hasattr(t, "model_json_schema") and hasattr(t, "model_validate"):
        return _pydantic
    if dataclasses.is_dataclass(t):
        return _dataclass
    if issubclass(t, tuple) and hasattr(t, "_fields"):
        return _named_tuple
    if issubclass(t, dict) and hasattr(t, "__total__"):
        return _typed_dict
    return _scalar if issubclass(t, (int, float, str)) else None


def _model(builder, cls):
    return cls.__rlm_model__(builder)


def _scalar(builder, cls):
    """A subclass of int, float or str from a snippet."""
    schema, convert = builder.of(next(plain for plain in (int, float, str) if issubclass(cls, plain)))
    return schema, _instance(cls, lambda value, strict: cls(convert(value, strict)))


def hints(cls):
    """The annotations of a class, names in them resolved. What the class is
    called inside of itself is known, too."""
    scope = {**vars(typing), **(finish.namespace or {}), **getattr(sys.modules.get(cls.__module__), "__dict__", {})}
    try:
        return typing.get_type_hints(cls, scope, {cls.__name__: cls}, include_extras=True)
    except NameError as error:
        raise TypeError(f"schema= cannot be understood: {cls.__name__} names a type that is not there yet: {error}") from None


def described(schema, cls):
    """The schema with the class's name and its docstring, if it has written one."""
    text = cls.__dict__.get("__doc__")
    schema["title"] = cls.__name__
    if isinstance(text, str) and text.strip() and not text.startswith(cls.__name__ + "("):
        schema["description"] = " ".join(text.split())
    return schema


def _enum(builder, cls):
    members = {name: member.value for name, member in cls.__members__.items() if member.name == name}
    by_value = all(isinstance(value, (str, int, float)) for value in members.values())
    options = {value if by_value else name: cls[name] for name, value in members.items()}

    def convert(value, strict):
        if isinstance(value, cls):
            return value
        for option, member in options.items():
            if type(option) is type(value) and option == value or not strict and option == value:
                return member
        if isinstance(value, str) and not strict:
            said = value.strip().lower()
            same = [m for option, m in options.items() if said in (str(option).lower(), m.name.lower())]
            if len(set(same)) == 1:
                return same[0]
        raise Mismatch(((), f"must be one of {', '.join(map(repr, options))}"))

    return described({"enum": list(options)}, cls), convert


def _instance(cls, convert):
    """A converter that leaves instances alone, and says what a constructor raised."""

    def keep(value, strict):
        if isinstance(value, cls):
            return value
        try:
            return convert(value, strict)
        except Mismatch:
            raise
        except Exception as error:
            raise Mismatch(((), f"{cls.__name__} refuses it: {error}")) from error

    return keep


def _dataclass(builder, cls):
    types = hints(cls)
    fields = {}
    for field in dataclasses.fields(cls):
        if field.init:
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            note = type("Note", (), {"description": field.metadata.get("description")})
            fields[field.name] = Field(field.name, types[field.name], required, (note,))
    schema, convert = builder.object(fields, lambda values: cls(**values))
    return described(schema, cls), _instance(cls, convert)


def _named_tuple(builder, cls):
    types = hints(cls)
    fields = {name: Field(name, types.get(name, typing.Any), name not in cls._field_defaults) for name in cls._fields}
    schema, convert = builder.object(fields, lambda values: cls(**values))
    return described(schema, cls), _instance(cls, convert)


def _typed_dict(builder, cls):
    types, required = hints(cls), set(cls.__required_keys__)
    for name, t in types.items():  # where annotations are text, CPython cannot tell
        mark = str(typing.get_origin(t)).rpartition(".")[2]
        if mark == "Required":
            required.add(name)
        elif mark == "NotRequired":
            required.discard(name)
    schema, convert = builder.object({name: Field(name, t, name in required) for name, t in types.items()}, dict)
    return described(schema, cls), convert


def _pydantic(builder, cls):
    """A model of the real pydantic, which knows all of this itself."""
    schema = cls.model_json_schema()
    for name, definition in schema.pop("$defs", {}).items():
        if builder.definitions.setdefault(name, definition) not in (definition, None):
            raise TypeError(f"schema= cannot be understood: two classes are called {name}")
        builder.definitions[name] = definition

    def convert(value, strict):
        if isinstance(value, cls):
            return value
        try:
            return cls.model_validate(wire.settle(value))
        except ValueError as error:
            raise Mismatch(((), f"{cls.__name__} refuses it: {error}")) from error

    return schema, convert


INLINE = (_pydantic, _scalar)  # they bring definitions of their own, or need none
