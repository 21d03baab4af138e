"""Functions and classes that snippets defined, taken apart and put together.

Code goes twice: marshalled, for an interpreter of the same version, and as its
place in a snippet's source, for any other. Objects that may refer to themselves
are made empty first and filled after.
"""

import _thread
import abc
import collections
import dataclasses
import enum
import functools
import gc
import importlib
import importlib.util
import linecache
import marshal
import operator
import reprlib
import sys
import threading
import types
import typing

import locks

_MAGIC = importlib.util.MAGIC_NUMBER
compile_snippet = None  # (source, name) -> code; set by run
_compiled = {}  # name of a snippet -> its code, while a state is written or read
_owners = {}  # id of a dict -> the module that it belongs to, likewise


main = None  # the __main__ module; set by run
lost = None  # (kind, reason): notes a value that is lost; set by state
stand_in = None  # (kind, reason): makes what stands for a lost value; set by state
changed = ()  # (module, name) of what the session put into modules, while a state is written
losses = None  # the losses of the state that is being written or read


def snippets():
    """Returns (name, entry) of the snippets that linecache has."""
    if type(linecache.cache) is not dict:
        return []
    return [(name, entry) for name, entry in list(linecache.cache.items())
            if type(name) is str and name.startswith("<snippet ") and type(entry) is tuple and len(entry) == 4]


def source(entry):
    """Returns the text of a snippet, empty if another one has put something else there."""
    lines = entry[2]
    return "".join(lines) if type(lines) is list and _STR.issuperset(map(type, lines)) else ""


_STR = frozenset((str,))


def attribute(obj, path):
    for part in path.split("."):
        obj = getattr(obj, part)
    return obj


def importable(obj, name=None):
    """Reports whether another interpreter finds obj by its module and name."""
    module = sys.modules.get(getattr(obj, "__module__", None) or "builtins")
    if module is None or module is main:
        return False
    if getattr(module, "__spec__", None) is None and module.__name__[:4] != "_rlm":
        return False  # a snippet made it
    try:
        name = name or obj.__qualname__
        return attribute(module, name) is obj and (not changed or (module.__name__, name) not in changed)
    except AttributeError:
        return False


def overrides(kind, *names):
    """Reports whether a class that is not importable defines one of the methods."""
    for name in names:
        for base in kind.__mro__:
            if name in base.__dict__:
                if not importable(base):
                    return True
                break
    return False


def forget():
    """Forgets what is known while a state is written or read."""
    global changed
    changed = ()
    _compiled.clear()
    _owners.clear()


# --- code ---------------------------------------------------------------------


def reduce_code(code):
    return make_code, (_MAGIC, marshal.dumps(code), code.co_filename, _place(code), code.co_name)


def _codes(code):
    """Yields all code objects inside code, depth first."""
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield const
            yield from _codes(const)


def _snippet_code(name):
    code = _compiled.get(name)
    if code is None and name in linecache.cache:
        code = _compiled[name] = compile_snippet("".join(linecache.cache[name][2]), name)
    return code


def _place(code):
    """(line, n): code is the nth of its name that begins on that line."""
    if not code.co_filename.startswith("<snippet "):
        return _library_place(code)
    whole = _snippet_code(code.co_filename)
    if whole is not None:
        same = [c for c in _codes(whole) if c.co_name == code.co_name and c.co_firstlineno == code.co_firstlineno]
        for n, candidate in enumerate(same):
            if candidate == code:
                return code.co_firstlineno, n
    return None


def _library_place(code):
    """Returns (module, function, code's name, its free variables) for what a function of the
    standard library made, such as the wrapper of contextlib.contextmanager."""
    outer, _, inner = getattr(code, "co_qualname", "").rpartition(".<locals>.")
    if not outer or "<locals>" in outer:
        return None
    for name in sys.stdlib_module_names:
        module = sys.modules.get(name)
        try:
            function = attribute(module, outer)
            found = _nested(function, inner) if function.__module__ == name else ()
        except AttributeError:
            continue
        if any(_alike(c, code) for c in found):
            return name, outer, inner, code.co_freevars
    return None


def _alike(a, b):
    """Reports whether two interpreters compiled the same source: their lines may differ."""
    return a.co_freevars == b.co_freevars and a.co_varnames == b.co_varnames and a.co_names == b.co_names


def _nested(function, name):
    return [c for c in _codes(function.__code__) if c.co_name == name]


def make_code(magic, data, filename, place, name):
    """Returns the code, None if this version of Python cannot have it."""
    if magic == _MAGIC:
        return marshal.loads(data)
    try:
        return _find_code(filename, place, name)
    except MemoryError:
        raise
    except Exception as error:
        lost("function", str(error))
        return None


def _find_code(filename, place, name):
    if place is None:
        raise ValueError(f"{name} has no source here, and its code is for another version of Python")
    if len(place) == 4:
        module, outer, inner, free = place
        for code in _nested(attribute(importlib.import_module(module), outer), inner):
            if code.co_freevars == free:
                return code
        raise ValueError(f"{name} of the module {module} is another one in this version of Python")
    line, n = place
    whole = _snippet_code(filename)
    return [c for c in _codes(whole) if c.co_name == name and c.co_firstlineno == line][n]


# --- functions ----------------------------------------------------------------


def reduce_function(function):
    if importable(function):
        return function.__qualname__
    code = function.__code__
    if code.co_name == "wrapper" and code.co_filename == _DISPATCHES and hasattr(function, "registry"):
        return _reduce_dispatcher(function)
    if code.co_filename.startswith("<rlm "):
        raise ValueError("it is a part of this tier")
    return (
        make_function, (code, _scope(function), function.__name__, function.__closure__),
        _function_state(function), None, None, set_function,
    )


DISPATCHER_MADE = ("registry", "dispatch", "register", "_clear_cache", "__wrapped__")
_DISPATCHES = functools.singledispatch.__code__.co_filename


def _reduce_dispatcher(function):
    """What functools.singledispatch makes; its code differs between versions of Python."""
    own = {name: value for name, value in function.__dict__.items()
           if name not in DISPATCHER_MADE}
    registry = dict(function.registry)
    return make_dispatcher, (registry.pop(object),), (registry, own), None, None, set_dispatcher


def make_dispatcher(function):
    return functools.singledispatch(function)


def set_dispatcher(function, state):
    registry, own = state
    for kind, implementation in registry.items():
        function.register(kind, implementation)
    function.__dict__.update(own)


def _scope(function):
    """Returns the function's globals: the name of their module, a module that was made by
    hand, or a dict."""
    scope = function.__globals__
    name = "__main__" if scope is main.__dict__ else scope.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or module.__dict__ is not scope:
        module = _owner(scope)
    if module is None:
        return scope
    return name if module is main or getattr(module, "__spec__", None) else module


def _owner(scope):
    """Returns the module whose names a dict holds, None if it is no module's."""
    if id(scope) not in _owners:
        _owners[id(scope)] = next(
            (m for m in gc.get_referrers(scope) if type(m) is types.ModuleType and m.__dict__ is scope), None)
    return _owners[id(scope)]


def _function_state(function):
    state = {name: getattr(function, name) for name in (
        "__defaults__", "__kwdefaults__", "__qualname__", "__doc__", "__module__", "__annotations__")}
    parameters = getattr(function, "__type_params__", ())
    if parameters:
        state["__type_params__"] = parameters
    return state, dict(function.__dict__)


def make_function(code, scope, name, closure):
    if code is None:
        return stand_in("function", f"{name} cannot be made in this version of Python")
    if isinstance(scope, str):
        scope = main if scope == "__main__" else importlib.import_module(scope)
    if isinstance(scope, types.ModuleType):
        scope = scope.__dict__
    return types.FunctionType(code, scope, name, None, closure)


def set_function(function, state):
    special, own = state
    if type(function) is not types.FunctionType:
        return  # a stand-in
    for name, value in special.items():
        setattr(function, name, value)
    function.__dict__.update(own)


def reduce_cell(cell):
    try:
        return make_cell, (), (cell.cell_contents,), None, None, set_cell
    except ValueError:  # empty
        return make_cell, ()


def make_cell():
    return types.CellType()


def set_cell(cell, state):
    cell.cell_contents = state[0]


# --- classes ------------------------------------------------------------------

# What type.__new__ makes itself, or what is put back in another way.
_MADE = frozenset((
    "__dict__", "__weakref__", "_abc_impl", "__dataclass_fields__", "__dataclass_params__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__static_attributes__", "__firstlineno__",
))
# What has to be there when the class is made.
_AT_ONCE = ("__slots__", "__module__", "__orig_bases__", "__type_params__")
_SLOT = type(type("_", (), {"__slots__": ("a",)}).a)


def reduce_class(cls):
    for name in ("None", "NotImplemented", "Ellipsis"):
        if cls is type(eval(name)):
            return type, (eval(name),)
    if importable(cls):
        return cls.__qualname__
    if cls.__module__ == "builtins":
        return make_builtin, (next(name for name, value in vars(types).items() if value is cls),)
    if isinstance(cls, enum.EnumMeta):
        return _reduce_enum(cls)
    if isinstance(cls.__dict__.get("__new__"), types.BuiltinFunctionType):
        raise TypeError("it is made by C code, and no module has it under its name")
    if type(cls).__module__ == "_ctypes" and hasattr(cls, "_length_"):
        return operator.mul, (cls._type_, cls._length_)  # an array
    if cls.__bases__ == (tuple,) and hasattr(cls, "_fields") and hasattr(cls, "_make"):
        return _reduce_named_tuple(cls)
    start = {name: cls.__dict__[name] for name in _AT_ONCE if name in cls.__dict__}
    args = type(cls), cls.__name__, cls.__qualname__, cls.__bases__, start
    return make_class, args, _class_state(cls), None, None, set_class


def make_builtin(name):
    """A built-in type that only the module types has a name for."""
    return getattr(types, name)


def _class_state(cls):
    fields = cls.__dict__.get("__dataclass_params__") and _own_fields(cls)
    names = {}
    for name, value in cls.__dict__.items():
        if name in _MADE or isinstance(value, _SLOT) or name in _AT_ONCE:
            continue
        if name in _OF_PROTOCOLS and typing.Protocol in cls.__mro__ and not _from_snippet(getattr(value, "__func__", value)):
            continue
        if name == "__doc__" and value is None or fields is not None and _generated(name, value):
            continue
        names[name] = value
    if "__annotations__" not in names and getattr(cls, "__annotations__", None):
        names["__annotations__"] = dict(cls.__annotations__)
    return names, fields, fields is not None and _parameters(cls), _registered(cls)


# What typing writes into protocols; it differs between versions of Python.
_OF_PROTOCOLS = frozenset((
    "__protocol_attrs__", "__non_callable_proto_members__", "__callable_proto_members_only__", "__subclasshook__", "__init__",
))


def _finish_protocol(cls):
    typing.Protocol.__init_subclass__.__func__(cls)
    if not cls._is_protocol:
        return
    if sys.version_info >= (3, 12):
        cls.__protocol_attrs__ = typing._get_protocol_attrs(cls)
        cls.__callable_proto_members_only__ = all(callable(getattr(cls, name, None)) for name in cls.__protocol_attrs__)
    if getattr(cls, "_is_runtime_protocol", False):
        typing.runtime_checkable(cls)


def _registered(cls):
    """Returns the classes that are registered with an abstract class."""
    if not isinstance(cls, abc.ABCMeta):
        return ()
    return [kind for kind in (ref() for ref in abc._get_dump(cls)[0]) if kind is not None]


def _parameters(cls):
    params = cls.__dataclass_params__
    found = {name: getattr(params, name) for name in params.__slots__ if name not in ("slots", "weakref_slot")}
    return {**found, "slots": "__slots__" in cls.__dict__, "match_args": "__match_args__" in cls.__dict__}


def _own_fields(cls):
    """Returns the dataclass fields of this class alone, as arguments of dataclasses.field."""
    own = cls.__dict__.get("__annotations__") or getattr(cls, "__annotations__", {})
    fields = {}
    for name in own:
        field = cls.__dict__["__dataclass_fields__"].get(name)
        if field is None:
            continue
        wanted = {"init": field.init, "repr": field.repr, "hash": field.hash, "compare": field.compare,
                  "metadata": dict(field.metadata)}
        if getattr(field, "kw_only", False) is True:
            wanted["kw_only"] = True
        for default in ("default", "default_factory"):
            if getattr(field, default) is not dataclasses.MISSING:
                wanted[default] = getattr(field, default)
        fields[name] = wanted
    return fields


# The files of the code that the decorator writes, or borrows.
_WRITES_METHODS = ("<string>", dataclasses.dataclass.__code__.co_filename, reprlib.recursive_repr.__code__.co_filename)


def _generated(name, value):
    """Reports whether the dataclass decorator wrote a method."""
    return (
        name.startswith("__") and isinstance(value, types.FunctionType)
        and value.__code__.co_filename in _WRITES_METHODS
        and name not in ("__getstate__", "__setstate__")  # these come with slots alone
    )


def _from_snippet(value):
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename.startswith("<snippet ")


def make_class(meta, name, qualname, bases, start):
    start = dict(start, __qualname__=qualname)
    build = abc.ABCMeta.__new__ if issubclass(meta, abc.ABCMeta) else type.__new__
    with _quiet(bases):
        return build(meta, name, bases, start)


class _quiet:
    """Keeps the hooks of the bases from running again for a class that has been
    made once already."""

    def __init__(self, bases):
        self.hooks = [(b, b.__dict__["__init_subclass__"]) for base in bases for b in base.__mro__
                      if "__init_subclass__" in b.__dict__ and isinstance(b.__dict__["__init_subclass__"], classmethod)
                      and b.__module__ == "__main__"]

    def __enter__(self):
        for base, _ in self.hooks:
            if "__init_subclass__" in base.__dict__:
                type.__delattr__(base, "__init_subclass__")

    def __exit__(self, *exc):
        for base, hook in self.hooks:
            type.__setattr__(base, "__init_subclass__", hook)


def set_class(cls, state):
    names, fields, parameters, registered = state
    _set_names(cls, names)
    if fields is not None:
        slots = {name: cls.__dict__[name] for name in fields if isinstance(cls.__dict__.get(name), _SLOT)}
        for name, wanted in fields.items():
            type.__setattr__(cls, name, dataclasses.field(**_known(dataclasses.field, wanted)))
        _write_methods(cls, parameters)
        for name in fields:
            if name not in names and name in cls.__dict__:
                type.__delattr__(cls, name)
        _set_names(cls, names)  # what was assigned after the decorator
        _set_names(cls, slots)
    if typing.Protocol in cls.__mro__:
        _finish_protocol(cls)
    if isinstance(cls, abc.ABCMeta):
        for kind in registered:
            abc.ABCMeta.register(cls, kind)


def _set_names(cls, names):
    for name, value in names.items():
        type.__setattr__(cls, name, value)


def _write_methods(cls, parameters):
    """Has the dataclass decorator write the methods of a class. With slots it would make
    another class; it refuses this last, when the methods of the one that has them are
    written."""
    try:
        dataclasses.dataclass(**_known(dataclasses.dataclass, parameters))(cls)
    except TypeError as error:
        if "already specifies __slots__" not in str(error):
            raise


def _known(function, arguments):
    """Returns the arguments that function has in this version of Python."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if arguments.get("kw_only") and "kw_only" not in names:
        lost("dataclass", "this version of Python has no fields that are for keywords only")
    return {name: value for name, value in arguments.items() if name in names}


# What the enum machinery makes of the members, in the class and in each member.
_ENUM_MADE = frozenset((
    "_member_map_", "_member_names_", "_value2member_map_", "_member_type_", "_value_repr_", "_new_member_",
    "_unhashable_values_", "_unhashable_values_map_", "_hashable_values_", "_use_args_",
    "_flag_mask_", "_all_bits_", "_singles_mask_", "_inverted_", "_boundary_", "__new__",
    "_add_alias_", "_add_value_alias_", "__reduce_ex__", "__reduce__",
))
MEMBER_MADE = frozenset(("_value_", "_name_", "__objclass__", "_sort_order_", "_inverted_"))


def _reduce_enum(cls):
    """Members are made bare, then get what they had: the methods of the class that made
    them have run once already."""
    members = {name: (_data(member), member._value_) for name, member in cls.__members__.items()}
    skip = set(members) | _ENUM_MADE
    own = {name: value for name, value in cls.__dict__.items()
           if name not in skip and name not in _MADE and name not in ("__module__", "__qualname__", "__doc__")
           and (_from_snippet(value) or not isinstance(value, types.FunctionType))
           and not isinstance(value, (types.MemberDescriptorType, enum.property if hasattr(enum, "property") else ()))
           and not _stock_enum_method(name, value)}
    for name, value in cls.__dict__.items():
        if isinstance(value, property) and name not in skip:
            own[name] = value
    attributes = {member._name_: kept for member in cls.__members__.values()
                  if (kept := {k: v for k, v in member.__dict__.items() if k not in MEMBER_MADE})}
    boundary = getattr(cls.__dict__.get("_boundary_"), "name", None)
    args = type(cls), cls.__bases__, cls.__name__, cls.__qualname__, members, cls.__module__, boundary
    return make_enum, args, (own, attributes), None, None, set_enum


def _stock_enum_method(name, value):
    function = getattr(value, "__func__", value)
    return name in ("_generate_next_value_", "__new_member__") and not _from_snippet(function)


def _data(member):
    """Returns the arguments with which the type that an enum mixes in made a member."""
    kind = type(member)._member_type_
    if kind is object:
        return ()
    base = next((b for b in kind.__mro__ if "__getnewargs__" in b.__dict__), None)
    return base.__getnewargs__(member) if base else ()


def _bare_member(data):
    """Returns a __new__ for the class body of an enum."""
    def __new__(cls, number):
        args, value = data[number[0] if type(number) is tuple else number]
        kind = cls._member_type_
        member = kind.__new__(cls, *args) if args else object.__new__(cls) if kind is object else kind.__new__(cls)
        member._value_ = value
        return member

    return __new__


def make_enum(meta, bases, name, qualname, members, module, boundary):
    start = meta.__prepare__(name, bases)
    start["__module__"], start["__qualname__"] = module, qualname
    if members:
        start["__new__"], start["__init__"] = _bare_member(list(members.values())), lambda self, *args: None
        for number, member in enumerate(members):
            start[member] = number
    options = {}
    if boundary is not None and hasattr(enum, "FlagBoundary"):  # CPython 3.11 on
        options["boundary"] = enum.FlagBoundary[boundary]
    with _quiet(bases):
        cls = meta.__new__(meta, name, bases, start, **options)
    if hasattr(cls, "_flag_mask_"):
        _set_masks(cls)
    if members:
        for made in ("__init__", "__new_member__"):
            type.__delattr__(cls, made)
    return cls


def _set_masks(cls):
    """Tells a class of flags which bits its members have; it was made of their numbers."""
    bits = [value for member in cls.__members__.values() if isinstance(value := member._value_, int) and value > 0]
    mask = functools.reduce(operator.or_, bits, 0)
    single = functools.reduce(operator.or_, (bit for bit in bits if not bit & bit - 1), 0)
    for name, value in (("_flag_mask_", mask), ("_singles_mask_", single), ("_all_bits_", 2 ** mask.bit_length() - 1)):
        if hasattr(cls, name):
            type.__setattr__(cls, name, value)


def set_enum(cls, state):
    names, attributes = state
    _set_names(cls, names)
    if "__new_member__" in names:
        type.__setattr__(cls, "_new_member_", names["__new_member__"])
    for name, kept in attributes.items():
        cls.__members__[name].__dict__.update(kept)


def _reduce_named_tuple(cls):
    made = collections.namedtuple("_", cls._fields)
    own = {name: value for name, value in cls.__dict__.items()
           if name not in made.__dict__ and name not in ("__annotations__", "__orig_bases__", "__static_attributes__",
                                                         "__firstlineno__", "__annotate_func__", "__annotate__",
                                                         "__annotations_cache__")}
    own["__qualname__"], own["__doc__"] = cls.__qualname__, cls.__doc__
    notes = dict(getattr(cls, "__annotations__", {}))
    if notes:
        own["__annotations__"] = notes
    return (make_named_tuple, (cls.__name__, cls._fields, tuple(cls._field_defaults.values()), cls.__module__),
            own, None, None, set_named_tuple)


def make_named_tuple(name, fields, defaults, module):
    return collections.namedtuple(name, fields, defaults=defaults, module=module)


def set_named_tuple(cls, names):
    _set_names(cls, names)


# --- parts of classes ----------------------------------------------------------


def _reduce_property(p):
    return property, (p.fget, p.fset, p.fdel, p.__doc__)


def _reduce_wrapper(m):
    return type(m), (m.__func__,)


def _reduce_method(m):
    """A bound method of a snippet goes as its function: its object may have another one by
    that name, or none yet."""
    if _from_snippet(m.__func__) or getattr(m.__self__, m.__name__, None) != m:
        return types.MethodType, (m.__func__, m.__self__)
    return m.__reduce__()


def _reduce_cached(p):
    return make_cached, (p.func, p.attrname)


def make_cached(function, name):
    made = functools.cached_property(function)
    if name is not None:
        made.__set_name__(None, name)
    return made


def _reduce_lock(lock):
    locked = lock.locked() if hasattr(lock, "locked") else "locked" in repr(lock) and "unlocked" not in repr(lock)
    if locked:
        raise TypeError("a lock that is held stays where it is")
    return make_lock, ("RLock" if "RLock" in type(lock).__name__ else "Lock",)


def make_lock(kind):
    return getattr(threading, kind)()


def _reduce_type_variable(v):
    if importable(v):
        return v.__name__
    return make_type_variable, (v.__name__, v.__bound__, v.__constraints__, v.__covariant__, v.__contravariant__)


def make_type_variable(name, bound, constraints, covariant, contravariant):
    return typing.TypeVar(name, *constraints, bound=bound, covariant=covariant, contravariant=contravariant)


def _reduce_dispatch_method(method):
    """Its other attributes differ between versions of Python."""
    return make_dispatch_method, (method.func,), method.dispatcher, None, None, set_dispatch_method


def make_dispatch_method(function):
    return functools.singledispatchmethod(function)


def set_dispatch_method(method, dispatcher):
    method.dispatcher = dispatcher


# The reductions of types that pickle does not know, or knows by name only.
SPECIAL = {
    types.CodeType: reduce_code,
    types.CellType: reduce_cell,
    property: _reduce_property,
    classmethod: _reduce_wrapper,
    staticmethod: _reduce_wrapper,
    types.MethodType: _reduce_method,
    functools.cached_property: _reduce_cached,
    functools.singledispatchmethod: _reduce_dispatch_method,
    _thread.LockType: _reduce_lock,
    locks.lock: _reduce_lock,
    locks.RLock: _reduce_lock,
    type(threading.RLock()): _reduce_lock,
    typing.TypeVar: _reduce_type_variable,
}

NAMED = (
    make_code, make_function, set_function, make_cell, set_cell, make_class, set_class, make_enum, set_enum, set_named_tuple,
    make_dispatcher, set_dispatcher, make_dispatch_method, set_dispatch_method, make_builtin, make_named_tuple, make_cached, make_lock, make_type_variable,
)
