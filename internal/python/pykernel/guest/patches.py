"""What a session changes in modules that it did not write: names that it sets or deletes
in a module, in a class or in an object of it, and entries of their dicts, lists and sets.
Each change moves as a value of its own, under the name of its place.

Libraries change themselves, too: they fill caches and import their parts late. The session
is taken for the author of a change if a snippet mentions the name, if the value can only
come from a snippet, or if it is plain data in a module of the standard library whose own
code does not set it.
"""

import enum
import gc
import importlib
import linecache
import operator
import re
import sys
import types
from collections import deque
from itertools import chain, repeat
from opcode import opmap

import _rlm

import definitions

_words = re.compile(r"(?<!self\.)(?<!cls\.)\b[^\W\d]\w*").findall
_get = object.__getattribute__
_MISSING = object()
_ELSEWHERE = object()  # stands for what the session changed in another interpreter to what this has
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class whose attributes can change
_CONTAINERS = (dict, list, set)
_LARGE = 50_000  # entries; of a larger container the number alone is kept
_WIDE, _DEEP = 1000, 3  # entries and levels; containers within a larger or deeper one are not looked at
_PLAIN = (type(None), bool, int, float, complex, str, bytes)

# name -> (module, its names, {path: (object, copy of its names or entries)}); of a function
# the copy has what _FUNCTION lists
_stock = {}
_NOTHING = None, {}, {}

# Names that belong to the interpreter, to this runtime, or to a setting of environment.py.
_OWN = frozenset((
    "__builtins__", "__warningregistry__", "__annotations__", "__annotations_cache__", "__cached__", "__spec__",
    "__loader__", "__file__", "__path__", "__package__", "__slotnames__", "__abstractmethods__", "_abc_impl",
))
_OWN_OF = {
    "builtins": {"_"},
    "gc": {"garbage"},
    "inspect": {"modulesbyfile", "_filesbymodname"},
    "linecache": {"cache"},
    "logging": {"root", "lastResort", "raiseExceptions", "Logger", "Manager", "PlaceHolder"},
    "os": {"environ", "environb"},
    "random": {"_inst"},
    "shutil": {"_ARCHIVE_FORMATS", "_UNPACK_FORMATS"},
    "sys": {"argv", "path", "modules", "path_importer_cache", "stdin", "stdout", "stderr", "__stdin__", "__stdout__",
            "__stderr__"},
    "threading": {"_active", "_main_thread"},
    "warnings": {"filters", "onceregistry", "_filters_version"},
}
# Modules that record what they have loaded, started or compiled.
_MACHINERY = ("_frozen_importlib", "importlib", "zipimport", "sysconfig", "encodings", "asyncio", "_asyncio", "concurrent", "threading",
              "tokenize", "site", "multiprocessing", "re", "_strptime", "typing", "weakref", "abc", "platform")

prepare = lambda name: None  # (name): called before a module's names are kept; set by environment


def begin():
    """Remembers what all modules have, and what each has once it is imported."""
    lock = getattr(importlib._bootstrap, "_ModuleLockManager", None)  # it is left when an import ends
    if lock is not None:
        _follow(lock)
    is_enabled = gc.isenabled()
    gc.disable()  # the copies would make it look at everything several times
    for name, _ in module_list():
        keep(name)
        if not getattr(_rlm, "native", False):  # the image has them then
            _summaries[name] = _Summary(_stock[name][2])
    if is_enabled:
        gc.enable()


def _follow(lock):
    stock = lock.__exit__

    def __exit__(self, *args):
        stock(self, *args)
        module = sys.modules.get(self._name)
        if args[0] is None and type(module) is types.ModuleType and _stock.get(self._name, _NOTHING)[0] is not module:
            try:
                keep(self._name)
            except Exception:
                pass  # an import does not fail for this; only what snippets made is then found

    lock.__exit__ = __exit__


def keep(name):
    """Takes what a module has now for its own."""
    prepare(name)
    module, parts = sys.modules[name], {}
    names = dict(vars(module))
    skipped = _OWN_OF.get(name, ())
    for key, value in names.items():
        if key not in _OWN and key not in skipped:
            _keep_part(parts, (key,), value, name)
    _stock[name] = module, names, parts
    _summaries.pop(name, None)


def keep_name(module, name):
    """Takes what a module has under one name for its own."""
    if module in _stock:
        _, names, parts = _stock[module]
        names[name] = value = getattr(sys.modules[module], name)
        _keep_part(parts, (name,), value, module)
        _summaries.pop(module, None)


def _keep_part(parts, path, value, module):
    kind = type(value)
    if kind is types.FunctionType:
        value.__dict__  # makes it, if there is none: a comparison then writes nothing
        parts[path] = value, _take_function(value)
        return
    if _container(kind):
        _keep_container(parts, path, value)
        return
    own = _names(value, kind, module)
    if own is None:
        return
    parts[path] = value, dict(own)
    for key, item in own.items():
        if type(item) in _CONTAINERS and key[:1] != "_":
            _keep_container(parts, (*path, key), item)
    if isinstance(value, enum.EnumMeta):
        for name, member in value._member_map_.items():
            if not vars(member).keys() <= definitions.MEMBER_MADE:
                parts[(*path, name)] = member, dict(vars(member))


class _Summary:
    """The parts of a module as long lists, which are compared at once: most sessions change
    nothing, and a look at each part takes much longer."""

    def __init__(self, parts):
        self.functions, self.classes, self.objects, self.dicts, self.lists = [], [], [], [], []
        named = {}  # id of a list above -> what its members had
        self.others = {}  # the parts that have to be looked at one by one
        for path, (value, before) in parts.items():
            kind, into = type(before), None
            if kind is tuple:
                into = None if value.__dict__ else self.functions
            elif kind is dict and isinstance(value, type):
                into = None if isinstance(value, enum.EnumMeta) else self.classes
            elif kind is dict and not _container(type(value)):
                into = self.objects
            elif kind is type(value) and kind is not set:
                into = self.dicts if kind is dict else self.lists
            if into is None or path[-1] in _OWN:
                self.others[path] = value, before
                continue
            into.append(value.__dict__ if into is self.classes else value)  # which stays the same one
            named.setdefault(id(into), []).append(before)
        taken = named.get(id(self.functions), ())
        self.taken = [[each[i] for each in taken] for i in range(len(_FUNCTION))]
        names = [before for list_ in (self.classes, self.objects) for before in named.get(id(list_), ())]
        dicts, items = named.get(id(self.dicts), []), named.get(id(self.lists), [])
        self.sizes = [len(before) for before in (*names, *dicts, *items)]
        self.names = list(chain.from_iterable(names))
        self.values = list(chain.from_iterable(map(dict.values, (*names, *dicts))))
        self.items = list(chain.from_iterable((*dicts, *items)))

    def is_same(self):
        """Reports whether all parts in the lists are as they were."""
        names = [*self.classes, *map(_get, self.objects, repeat("__dict__"))]
        return (
            all(all(map(operator.is_, map(take, self.functions), taken))
                for take, taken in zip(_TAKE_FUNCTION, self.taken))
            and not any(map(_DICT, self.functions))
            and list(map(len, (*names, *self.dicts, *self.lists))) == self.sizes
            and list(chain.from_iterable(names)) == self.names  # texts, which are equal if they are the same
            and all(map(operator.is_, chain.from_iterable(map(_VALUES, (*names, *self.dicts))), self.values))
            and all(map(operator.is_, chain.from_iterable((*self.dicts, *self.lists)), self.items))
        )


_summaries = {}  # name -> the summary of a module's parts
_DICT, _VALUES = operator.attrgetter("__dict__"), operator.methodcaller("values")


def _changed_parts(name, parts):
    """Returns the parts of a module that may have changed. A summary pays from the second time on."""
    summary = _summaries.setdefault(name, _MISSING)
    if summary is _MISSING:
        _summaries[name] = None
        return parts
    if summary is None:
        summary = _summaries[name] = _Summary(parts)
    try:
        return summary.others if summary.is_same() else parts
    except Exception:
        return parts  # an object has lost its names


def _container(kind):
    """Returns the kind of container whose entries instances of a class have, None if they have
    none."""
    if kind in _CONTAINERS:
        return kind
    return dict if issubclass(kind, dict) else list if issubclass(kind, deque) else None


def _keep_container(parts, path, value):
    """Keeps the entries, and those of containers within."""
    kind, size = _container(type(value)), len(value)
    if size >= _LARGE:
        parts[path] = value, size
        return
    parts[path] = value, _copy(value)
    if kind is set or size > _WIDE or len(path) > _DEEP:
        return
    for key, item in dict.items(value) if kind is dict else enumerate(value):
        if type(item) in _CONTAINERS and type(key) in _PLAIN:
            _keep_container(parts, (*path, key), item)


def _copy(value):
    """Returns a plain container with the same entries."""
    return dict.copy(value) if isinstance(value, dict) else set(value) if isinstance(value, set) else list(value)


def _names(value, kind, module):
    """Returns the names of a class or object that belongs to a module, None for any other value."""
    if issubclass(kind, type):
        return value.__dict__ if value.__flags__ & _HEAP and value.__module__ == module else None
    if not kind.__flags__ & _HEAP or issubclass(kind, (int, str, types.ModuleType)) or not kind.__dictoffset__:
        return None
    try:
        own = _get(value, "__dict__")
    except AttributeError:
        return None
    return own if type(own) is dict else None


_FUNCTION = ("__code__", "__defaults__", "__kwdefaults__")


_TAKE_FUNCTION = tuple(map(operator.attrgetter, _FUNCTION))


def _take_function(function):
    return function.__code__, function.__defaults__, function.__kwdefaults__


def module_list():
    """Returns the modules that were imported, without those of this runtime. A snippet may have put
    others among them."""
    ours = sys.modules.get("__main__"), sys.modules.get("rlm_models")
    return [(name, module) for name, module in list(sys.modules.items())
            if type(name) is str and type(module) is types.ModuleType and getattr(module, "__spec__", None) and module not in ours]


# --- what has changed ----------------------------------------------------------

SET, DELETE, ENTRIES, AROUND, MEMBERS, IMPLEMENT = "set", "delete", "entries", "around", "members", "implement"


class Changes:
    """The changes that a session has made: (name for the report, change) of each, and where
    the values are from that it replaced."""

    def __init__(self):
        self.found = []
        self.originals = {}  # id -> (module, path, inside) of what has been replaced
        self.places = set()  # (module, path): under these names are no longer the library's own
        self._seen = set()  # the ids of containers: some have several places
        self.unknown = []  # (name, reason) of what may have changed
        _look_at_snippets()
        for module_name, module in module_list():
            try:
                self._compare_module(module_name, module)
            except Exception as error:
                self.unknown.append((module_name, f"it cannot be compared with what it was: {error}"))

    def _compare_module(self, module_name, module):
        now = vars(module)
        known, names, parts = _stock.get(module_name, _NOTHING)
        if known is not module:
            parts, names = {}, {name: value for name, value in now.items() if not of_snippet(value)}
        if len(now) != len(names) or list(now) != list(names) or any(map(operator.is_not, now.values(), names.values())):
            self._compare_names(module_name, (), names, dict(now))
        for path, (value, before) in list(_changed_parts(module_name, parts).items()):
            kind = type(before)
            if kind is int:
                if len(value) != before:
                    self.unknown.append((".".join((module_name, *path)), "it is too large to be compared with what it was"))
            elif kind is tuple:
                self._compare_function(module_name, path, before, value)
            elif not _container(type(value)):  # a class or an object
                now = value.__dict__ if isinstance(value, type) else _get(value, "__dict__")
                if _differs(now, before):
                    self._compare_names(module_name, path, before, dict(now))
                if isinstance(value, enum.EnumMeta):
                    self._compare_members(module_name, path, value, parts)
            elif id(value) not in self._seen and path[-1] not in _OWN:
                now = value if type(value) is kind else _copy(value)
                if _differs(now, before):
                    self._seen.add(id(value))
                    self._compare_entries(module_name, path, before, now)

    def _compare_names(self, module, path, before, now):
        skipped = _OWN_OF.get(module, ()) if not path else ()
        for name in [*before, *(name for name in now if name not in before)]:
            old, value = before.get(name, _MISSING), now.get(name, _MISSING)
            if type(name) is not str:
                if value is not old:
                    self.unknown.append((f"{'.'.join((module, *path))}.{type(name).__name__}", "its name is no text"))
                continue
            if old is value or name in _OWN or name in skipped:
                continue
            if isinstance(value, types.ModuleType) and sys.modules.get(f"{module}.{name}") is value:
                continue  # a package gets its parts as they are imported
            if self._is_of_session(module, name, value, old):
                self._add(module, path, name, DELETE if value is _MISSING else SET, value)
                self._note_original(module, (*path, name), old)

    def _compare_members(self, module, path, cls, parts):
        """Compares the members of an enum that had no attributes of their own."""
        for name, member in cls._member_map_.items():
            if (*path, name) not in parts and not vars(member).keys() <= definitions.MEMBER_MADE:
                made = {key: value for key, value in vars(member).items() if key in definitions.MEMBER_MADE}
                self._compare_names(module, (*path, name), made, dict(vars(member)))

    def _compare_function(self, module, path, before, function):
        for name, old, value in zip(_FUNCTION, before, _take_function(function)):
            if old is not value:
                self._add(module, path, name, SET, value)
        own = function.__dict__
        for name, value in own.items() if own else ():
            if name not in definitions.DISPATCHER_MADE and (name in mentioned() or of_snippet(value)):
                self._add(module, path, name, SET, value)
        for cls, implementation in own.get("registry", {}).items() if own else ():  # of functools.singledispatch
            if of_snippet(cls) or of_snippet(implementation):
                self._add(module, path, "registry", IMPLEMENT, (cls, implementation))

    def _add(self, module, path, name, action, value):
        inner = ".".join(map(str, path if name is None else (*path, name)))
        place = f"{module}.{inner}"
        self.places.add((module, inner))
        self.found.append((place, [module, path, action, name, None if value is _MISSING else value]))

    def _note_original(self, module, path, old):
        if old is _MISSING or old is _ELSEWHERE or type(old) in _PLAIN:
            return
        self.originals[id(old)] = module, path, False
        if isinstance(old, (classmethod, staticmethod)):
            self.originals.setdefault(id(old.__func__), (module, path, True))

    def _is_of_session(self, module, name, value, old):
        if old is _ELSEWHERE:
            return True
        if old is _MISSING and hasattr(sys.modules[module], "__getattr__") and definitions.importable(value):
            return False  # a module that makes its names when they are first used
        if of_snippet(value) or self._mentions(module, name):
            return True
        return _is_plain(value) and not _changes_itself(module) and not _sets_itself(module, name)

    def _compare_entries(self, module, path, before, now):
        if type(now) is dict:
            changed = {key: value for key, value in now.items()
                       if before.get(key, _MISSING) is not value and self._fills(module, path, key, value)}
            gone = [key for key in before if key not in now and self._fills(module, path, key, None)]
            if changed or gone:
                self._add(module, path, None, ENTRIES, (changed, gone))
        elif type(now) is list:
            parts = _around(before, now)
            if any(self._fills(module, path, item, None) for part in parts for item in part or ()) or not any(parts):
                self._add(module, path, None, AROUND, parts)
        else:
            old, new = set(map(id, before)), set(map(id, now))
            parts = {item for item in now if id(item) not in old}, {item for item in before if id(item) not in new}
            if any(self._fills(module, path, item, None) for part in parts for item in part):
                self._add(module, path, None, MEMBERS, parts)

    def _fills(self, module, path, key, value):
        """Reports whether an entry of a container is the session's."""
        if of_snippet(key) or of_snippet(value):
            return True
        if any(self._mentions(module, part) for part in path) and not module.startswith(_MACHINERY):
            return not (hasattr(value, "__qualname__") and definitions.importable(value))
        return _is_plain(key) and _is_plain(value) and not _changes_itself(module)

    def _mentions(self, module, name):
        """Reports whether a snippet mentions a name, and is not likely to mean another one."""
        if name not in mentioned() or name[:1] != "_" or not _changes_itself(module):
            return name in mentioned()
        whole = f"{module.rpartition('.')[2]}.{name}"
        return any(whole in text for text in _mentioned[2])


def mentioned():
    """Returns the words of all snippets, as they were when the changes were last looked for."""
    return _mentioned[1]


def _look_at_snippets():
    global _mentioned
    snippets = [entry for _, entry in definitions.snippets()]
    if len(snippets) != len(_mentioned[0]) or any(map(operator.is_not, snippets, _mentioned[0])):
        texts = list(map(definitions.source, snippets))
        _mentioned = snippets, {word for text in texts for word in _words(text)}, texts


_mentioned = [], set(), []  # the snippets, their words and their texts


def _differs(now, before):
    """Compares by identity: what is equal may still be another, and comparing runs code."""
    if isinstance(before, set):
        return set(map(id, now)) != set(map(id, before))
    if isinstance(before, dict):
        return len(now) != len(before) or any(map(operator.is_not, now.values(), before.values())) or any(
            map(operator.is_not, now, before))
    return len(now) != len(before) or any(map(operator.is_not, now, before))


def _around(before, now):
    """Returns what stands before and after the old items, or (None, None, all items)."""
    for start in range(len(now) - len(before) + 1):
        if all(a is b for a, b in zip(now[start:], before)):
            return now[:start], now[start + len(before):], None
    return None, None, list(now)


def _is_plain(value):
    return value is _MISSING or type(value) in _PLAIN or (
        type(value) in (tuple, list, set, frozenset) and all(map(_is_plain, value))
        or type(value) is dict and all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    )


def of_snippet(value):
    """Reports whether a snippet defined a function or class, or the class of an object; of a
    tuple or list, whether it has one."""
    if type(value) in (tuple, list):
        return any(map(of_snippet, value[:9]))
    if isinstance(value, (classmethod, staticmethod, types.MethodType)):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, types.FunctionType):
        return value.__code__.co_filename.startswith("<snippet ")
    return (value if isinstance(value, type) else type(value)).__module__ == "__main__"


_REBINDS = (opmap["STORE_GLOBAL"], opmap["DELETE_GLOBAL"])


def _changes_itself(module):
    """Reports whether a module changes in ways that its code does not show."""
    known = getattr(sys, "stdlib_module_names", None)
    return module.startswith(_MACHINERY) or known is not None and module.partition(".")[0] not in known


def _sets_itself(module, name):
    """Reports whether the module's own functions set one of its names."""
    scope = vars(sys.modules[module])
    for value in list(scope.values()):
        for function in list(vars(value).values()) if isinstance(value, type) else (value,):
            if isinstance(function, types.FunctionType) and function.__globals__ is scope and _rebinds(function.__code__, name):
                return True
    return False


def _rebinds(code, name):
    if name in code.co_names:
        argument = code.co_names.index(name) & 0xFF
        steps = code.co_code
        if any(steps[i] in _REBINDS and steps[i + 1] == argument for i in range(0, len(steps), 2)):
            return True
    return any(isinstance(const, types.CodeType) and _rebinds(const, name) for const in code.co_consts)


# --- what arrives ---------------------------------------------------------------


def give(change):
    """Makes a change of another interpreter in this."""
    module, path, action, name, value = change
    owner = importlib.import_module(module)
    for part in path:
        owner = _part(owner, part)
    if action == ENTRIES:
        owner.update(value[0])
        for key in value[1]:
            owner.pop(key, None)
    elif action == AROUND:
        before, after, whole = value
        items = [*before, *owner, *after] if whole is None else whole
        owner.clear()
        owner.extend(items)
    elif action == IMPLEMENT:
        owner.register(*value)
    elif action == MEMBERS:
        owner.update(value[0])
        owner.difference_update(value[1])
    else:
        _remember(module, path, name, value if action == SET else _MISSING)
        _set_name(owner, action, name, value)


def _part(owner, name):
    if isinstance(owner, enum.EnumMeta) and name in owner._member_map_:
        return owner._member_map_[name]
    if isinstance(owner, (type, types.ModuleType)):
        return vars(owner)[name]
    return owner[name] if _container(type(owner)) else getattr(owner, name)


def _remember(module, path, name, value):
    """Keeps a change visible that makes something what it is here anyway: a third interpreter may
    have something else."""
    _, names, parts = _stock.get(module, _NOTHING)
    before = parts.get(tuple(path), (None, None))[1] if path else names
    if type(before) is dict and (before.get(name, _MISSING) is value or type(value) in _PLAIN and before.get(name) == value):
        before[name] = _ELSEWHERE
        _summaries.pop(module, None)


def _set_name(owner, action, name, value):
    kind = next((k for k in (type, types.ModuleType, types.FunctionType) if isinstance(owner, k)), object)
    if action == SET:
        kind.__setattr__(owner, name, value)
    elif name in vars(owner):
        kind.__delattr__(owner, name)


def original(module, path, inside):
    """Returns what a module had in a place before the session changed it, or the function
    inside a class method or static method."""
    importlib.import_module(module)
    _, names, parts = _stock.get(module, _NOTHING)
    found = (names if len(path) == 1 else parts.get(tuple(path[:-1]), (None, {}))[1])[path[-1]]
    return found.__func__ if inside else found
