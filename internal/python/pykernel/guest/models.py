"""A look-alike of pydantic's models for tiers without pydantic.

It has what models write: BaseModel with annotations and defaults, Field with
bounds, validators, model_dump and its relatives, and the names of pydantic 1
for them. What it has not is named in docs/reference/schema.md; asking for it is asking
for a module that is missing, so that another tier may take over.

Snippets know this module as rlm_models, and as pydantic where there is none.
"""

__name__ = "rlm_models"  # where classes below say that they are from; see pydantics.py

import copy as _copy
import json as _json
import typing as _typing
from typing import Annotated

import classcontracts as _classcontracts
import contracts as _contracts
import converters as _converters
import wire as _wire

_Mismatch = _converters.Mismatch
_MISSING = type("PydanticUndefinedType", (), {"__repr__": lambda self: "PydanticUndefined"})()
_known = {}  # class -> its _Model, as long as the class is there; see _model


def _load(text):
    """Reads JSON text; Decimals are made of the text of its numbers."""
    return _json.loads(text, parse_float=_wire.read_literal if _wire.keeps_literals else None)


class ValidationError(ValueError):
    """What is wrong with the data of a model."""

    def __init__(self, title, problems):
        self.title, self._problems = title, list(problems)
        lines = [f"{len(self._problems)} validation error{'s' * (len(self._problems) != 1)} for {title}"]
        for path, message in self._problems:
            lines += [".".join(map(str, path)), f"  {message}"] if path else [f"  {message}"]
        super().__init__("\n".join(lines))

    def __reduce__(self):
        return ValidationError, (self.title, self._problems)

    def errors(self, **_):
        return [{"type": "missing" if message == "is missing" else "value_error", "loc": tuple(path), "msg": message}
                for path, message in self._problems]

    def error_count(self):
        return len(self._problems)


class FieldInfo:
    """What Field() says of a field."""

    def __init__(self, default=_MISSING, **notes):
        self.default = _MISSING if default is ... else default
        self.__dict__.update(notes)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def is_required(self):
        return self.default is _MISSING and self.default_factory is None

    def get_default(self, call_default_factory=True):
        return self.default_factory() if self.default_factory is not None else _copy.deepcopy(self.default)

    def __reduce__(self):
        own = {name: value for name, value in self.__dict__.items() if name != "default"}
        return _field_info, (own,) if self.default is _MISSING else (own, self.default)

    def __repr__(self):
        return "FieldInfo(" + ", ".join(f"{n}={v!r}" for n, v in self.__dict__.items() if v is not _MISSING) + ")"


def _field_info(own, *default):
    return FieldInfo(*default, **own)


def Field(default=_MISSING, *, regex=None, min_items=None, max_items=None, **notes):
    """A field's default, bounds and description."""
    for name, value in (("pattern", regex), ("min_length", min_items), ("max_length", max_items)):
        if value is not None:
            notes.setdefault(name, value)
    notes["alias"] = notes.get("alias") or notes.get("validation_alias")
    return FieldInfo(default, **{name: value for name, value in notes.items() if value is not None})


def PrivateAttr(default=None, *, default_factory=None):
    return default_factory() if default_factory is not None else default


class _Validator:
    """A method of a class that changes or refuses the value of a field."""

    def __init__(self, function, fields, mode):
        self.function, self.fields, self.mode = function, fields, mode

    def __get__(self, instance, owner=None):
        function = self.function if isinstance(self.function, (classmethod, staticmethod)) else classmethod(self.function)
        return function.__get__(None, owner or type(instance))


def field_validator(*fields, mode="after", **_):
    return lambda function: _Validator(function, fields, mode)


def validator(*fields, pre=False, **_):
    return lambda function: _Validator(function, fields, "before" if pre else "after")


class _ModelValidator:
    def __init__(self, function, mode):
        self.function, self.mode = function, mode

    def __get__(self, instance, owner=None):
        function = self.function
        if isinstance(function, (classmethod, staticmethod)):
            return function.__get__(None, owner or type(instance))
        return function.__get__(instance, owner) if instance is not None else function


def model_validator(*, mode="after"):
    return lambda function: _ModelValidator(function, mode)


def ConfigDict(**config):
    return config


class _Model:
    """The facts about one model class, computed when it is first used."""

    def __init__(self, cls):
        self.fields, self.validators, self.model_validators, self.config = {}, [], [], {}
        for base in reversed(cls.__mro__):
            own = base.__dict__
            old = own.get("Config")
            if isinstance(old, type):
                self.config.update((n, v) for n, v in vars(old).items() if not n.startswith("_"))
            self.config.update(own.get("model_config") or {})
            self.validators += [v for v in own.values() if isinstance(v, _Validator)]
            self.model_validators += [v for v in own.values() if isinstance(v, _ModelValidator)]
        for name, hint in _classcontracts.hints(cls).items():
            if not name.startswith("_") and name != "model_config" and _typing.get_origin(hint) is not _typing.ClassVar and hint is not _typing.ClassVar:
                self.fields[name] = self.field(cls, name, hint)

    def field(self, cls, name, hint):
        default = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), _MISSING)
        info = default if isinstance(default, FieldInfo) else FieldInfo(default)
        notes = getattr(hint, "__metadata__", ())
        for note in notes:
            if isinstance(note, FieldInfo):  # Annotated[int, Field(...)]
                info = FieldInfo(**{**note.__dict__, **{n: v for n, v in info.__dict__.items() if v is not _MISSING}})
        made = FieldInfo(**info.__dict__)
        made.annotation = hint
        return made

    def build(self, cls, builder):
        fields = {}
        for name, info in self.fields.items():
            fields[name] = _contracts.Field(name, info.annotation, info.is_required(), (info,), info.alias)
        schema, self.read = builder.object(fields, dict, self.config.get("extra"))
        return _classcontracts.described(schema, cls)


def _model(cls):
    """Returns the _Model of a class; it is kept outside because the class moves between tiers."""
    found = _known.get(cls)
    if found is None:
        if len(_known) > 500:
            _known.clear()
        found = _known[cls] = _Model(cls)
        found.build(cls, _contracts.Builder())
    return found


def _run(function, *args):
    try:
        return function(*args)
    except (ValueError, AssertionError) as error:
        if isinstance(error, _Mismatch):
            raise
        problems = getattr(error, "_problems", None)
        raise (_Mismatch(*problems) if problems else _Mismatch(((), f"Value error, {error}"))) from error


def _values(cls, model, data):
    """Returns the values of all fields from a dict of data."""
    for v in model.model_validators:
        if v.mode == "before":
            data = _run(v.__get__(None, cls), data)
    data, problems, failed = dict(data), [], set()
    for mode in ("before", "after"):
        if mode == "after":
            try:
                data = model.read(data, False)
            except _Mismatch as error:
                raise _Mismatch(*problems, *error.problems) from None
        for v in model.validators:
            for name in model.fields if "*" in v.fields else v.fields:
                key = name if name in data else getattr(model.fields.get(name), "alias", None)
                if v.mode == mode and key in data and name not in failed:
                    try:
                        data[key] = _run(_called(v, cls, data, name), data[key])
                    except _Mismatch as error:
                        failed.add(name)
                        problems += error.under(name).problems
    if problems:
        raise _Mismatch(*problems)
    return data


def _called(v, cls, data, name):
    """Returns the validator as a function of one value; some take (value, info) or (value, values)."""
    bound = v.__get__(None, cls)
    code = getattr(getattr(bound, "__func__", bound), "__code__", None)
    count = code.co_argcount - hasattr(bound, "__self__") if code is not None else 1
    if count < 2:
        return bound
    info = type("ValidationInfo", (dict,), {"data": data, "field_name": name, "context": None})(data)
    return lambda value: bound(value, info)


class _ClassFields:
    """model_fields: of the class, and of an instance."""

    def __get__(self, instance, owner):
        return _model(owner).fields


class BaseModel:
    __slots__ = ("__dict__", "__weakref__", "__pydantic_fields_set__")
    model_config = {}
    model_fields = _ClassFields()
    __fields__ = model_fields

    def __init_subclass__(cls, **config):
        super().__init_subclass__()
        if config:
            cls.model_config = {**cls.model_config, **config}

    def __init__(self, /, **data):
        model = _model(type(self))
        try:
            self._fill(model, _values(type(self), model, data))
        except _Mismatch as error:
            raise ValidationError(type(self).__name__, error.problems) from None

    def _fill(self, model, values):
        own = self.__dict__
        for name, info in model.fields.items():
            own[name] = values[name] if name in values else info.get_default()
        own.update((name, value) for name, value in values.items() if name not in own)
        object.__setattr__(self, "__pydantic_fields_set__", set(values))
        for v in model.model_validators:
            if v.mode == "after":
                _run(v.__get__(self, type(self)))
        self.model_post_init(None)

    def model_post_init(self, context):
        pass

    @classmethod
    def __rlm_model__(cls, builder):
        schema = _model(cls).build(cls, builder)
        return schema, cls._read

    @classmethod
    def _read(cls, value, strict):
        if isinstance(value, cls):
            return value
        model = _model(cls)
        if strict:
            model.read(_converters.members(value), True)
        if cls.__init__ is not BaseModel.__init__:
            return _run(lambda: cls(**_converters.members(value)))
        made = cls.__new__(cls)
        made._fill(model, _values(cls, model, _converters.members(value)))
        return made

    @classmethod
    def model_validate(cls, obj, **_):
        if not isinstance(obj, (dict, cls)) and cls.model_config.get("from_attributes"):
            obj = {name: getattr(obj, name) for name in cls.model_fields if hasattr(obj, name)}
        try:
            return cls._read(obj, False)
        except _Mismatch as error:
            raise ValidationError(cls.__name__, error.problems) from None

    @classmethod
    def model_validate_json(cls, json_data, **_):
        try:
            _model(cls)  # which decides whether numbers keep their text
            data = _load(json_data)
        except ValueError as error:
            raise ValidationError(cls.__name__, [((), f"Invalid JSON: {error}")]) from None
        return cls.model_validate(data)

    @classmethod
    def model_construct(cls, _fields_set=None, **values):
        made = cls.__new__(cls)
        for name, info in _model(cls).fields.items():
            if name in values or not info.is_required():
                made.__dict__[name] = values[name] if name in values else info.get_default()
        return made

    @classmethod
    def model_json_schema(cls, **_):
        return _json.loads(_contracts.to_schema(cls)[0])

    @classmethod
    def model_rebuild(cls, **_):
        _known.pop(cls, None)

    def model_dump(self, *, mode="python", include=None, exclude=None, by_alias=False, exclude_none=False,
                   exclude_unset=False, exclude_defaults=False, **_):
        fields, made = _model(type(self)).fields, {}
        for name, value in self.__dict__.items():
            info = fields.get(name)
            if name.startswith("_") or include is not None and name not in include or name in (exclude or ()) or \
                    exclude_none and value is None or exclude_unset and name not in self.model_fields_set or \
                    exclude_defaults and info is not None and not info.is_required() and value == info.get_default():
                continue
            below = {"mode": mode, "by_alias": by_alias, "exclude_none": exclude_none, "exclude_unset": exclude_unset,
                     "exclude_defaults": exclude_defaults}
            made[info.alias if by_alias and info is not None and info.alias else name] = _dumped(value, below)
        return _json.loads(_wire.encode_whole(made)) if mode == "json" else made

    def model_dump_json(self, *, indent=None, **options):
        made = self.model_dump(**{**options, "mode": "json"})
        return _json.dumps(made, indent=indent, ensure_ascii=False, separators=None if indent else (",", ":"))

    def model_copy(self, *, update=None, deep=False):
        made = type(self).__new__(type(self))
        values, given = _copy.deepcopy(self.__getstate__()) if deep else self.__getstate__()
        made.__setstate__(({**values, **(update or {})}, given | set(update or ())))
        return made

    @property
    def model_fields_set(self):
        return getattr(self, "__pydantic_fields_set__", set())

    def __getstate__(self):
        return self.__dict__, self.model_fields_set

    def __setstate__(self, state):
        values, given = state
        self.__dict__.update(values)
        object.__setattr__(self, "__pydantic_fields_set__", given)

    def __setattr__(self, name, value):
        model = _model(type(self))
        if model.config.get("frozen") or model.config.get("allow_mutation") is False:
            raise ValidationError(type(self).__name__, [((name,), "Instance is frozen")])
        if not name.startswith("_") and name not in model.fields and model.config.get("extra") != "allow" and not hasattr(type(self), name):
            raise ValueError(f'"{type(self).__name__}" object has no field "{name}"')
        if model.config.get("validate_assignment") and name in model.fields:
            value = getattr(type(self).model_validate({**self._own(), name: value}), name)
        object.__setattr__(self, name, value)

    def _own(self):
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __eq__(self, other):
        return type(self) is type(other) and self._own() == other._own() if isinstance(other, BaseModel) else NotImplemented

    def __hash__(self):
        if not _model(type(self)).config.get("frozen"):
            raise TypeError(f"unhashable type: '{type(self).__name__}'")
        return hash((type(self), *self._own().values()))

    def __iter__(self):
        return iter(self._own().items())

    def __str__(self):
        return " ".join(f"{name}={value!r}" for name, value in self._own().items())

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._own().items())})"

    # The names of pydantic 1
    dict = model_dump
    copy = model_copy
    parse_obj, parse_raw, schema, construct = model_validate, model_validate_json, model_json_schema, model_construct

    def json(self, **options):
        return self.model_dump_json(**options)


def _dumped(value, options):
    if isinstance(value, BaseModel):
        return value.model_dump(**options)
    if isinstance(value, dict):
        return {key: _dumped(item, options) for key, item in value.items()}
    return type(value)(_dumped(item, options) for item in value) if type(value) in (list, tuple) else value


class TypeAdapter:
    """Validates values of any type that schema= takes."""

    def __init__(self, type, **_):
        self._type = type
        self._schema, self._read = _contracts.to_schema(type)

    def __reduce__(self):
        return TypeAdapter, (self._type,)

    def validate_python(self, value, **_):
        try:
            return self._read(value)
        except _Mismatch as error:
            raise ValidationError(getattr(self._type, "__name__", str(self._type)), error.problems) from None

    def validate_json(self, text, **_):
        return self.validate_python(_load(text))

    def json_schema(self, **_):
        return _json.loads(self._schema)

    def dump_python(self, value, **options):
        return _dumped(value, options)


def conint(**notes):
    return Annotated[int, Field(**notes)]


def confloat(**notes):
    return Annotated[float, Field(**notes)]


def constr(**notes):
    return Annotated[str, Field(**notes)]


PositiveInt, NonNegativeInt = Annotated[int, Field(gt=0)], Annotated[int, Field(ge=0)]
PositiveFloat, NonNegativeFloat = Annotated[float, Field(gt=0)], Annotated[float, Field(ge=0)]
StrictBool, StrictInt, StrictFloat, StrictStr = bool, int, float, str
EmailStr = HttpUrl = AnyUrl = AnyHttpUrl = str


def conlist(item, **notes):
    return Annotated[_typing.List[item], Field(**notes)]


def __getattr__(name):
    """Reports a name that only pydantic may have, because another tier may have pydantic."""
    if not name.startswith("_"):
        _wire.send("r", "pydantic")
    raise AttributeError(f"the look-alike of pydantic has no {name!r}")
