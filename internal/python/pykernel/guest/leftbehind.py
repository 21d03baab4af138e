"""Values that could not move: what is noted of them, and what stands in their place."""

import definitions

MOST = 200  # losses that are named, and values with a stand-in


class Losses:
    """What is left behind: the first by name, the others counted by their types."""

    def __init__(self):
        self.name = ""  # the variable that is being written or read
        self.named = []
        self.more = {}

    def note(self, kind, reason):
        if len(self.named) < MOST:
            self.named.append({"name": self.name, "type": kind, "reason": reason[:300]})
        elif kind in self.more or len(self.more) < MOST:
            count, first = self.more.get(kind, (0, reason[:300]))
            self.more[kind] = count + 1, first
        else:
            self.more["other types"] = self.more.get("other types", (0, ""))[0] + 1, "there are too many types"

    def has(self, name):
        return any(loss["name"] == name for loss in self.named)

    def report(self):
        return self.named + [
            {"name": f"{count:,} more", "type": kind, "reason": reason} for kind, (count, reason) in self.more.items()
        ]


class LeftBehind:
    """Stands for a value that could not move. Any use of it says so."""

    __slots__ = ("_kind", "_reason")

    def __init__(self, kind, reason):
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_reason", reason)

    def _parts(self):
        return object.__getattribute__(self, "_kind"), object.__getattribute__(self, "_reason")

    def __repr__(self):
        return f"<{self._kind} left behind: {self._reason}>"

    def __reduce__(self):
        return left_behind, (self._kind, self._reason)

    def _refuse(self, *args, **kwargs):
        kind, reason = self._parts()
        raise RuntimeError(f"this {kind} was left behind when the session moved: {reason}. Make it again.")

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._refuse()


for _operation in (
    "call iter next len getitem setitem delitem contains bool str int float index enter exit aiter anext await aenter "
    "aexit lt le gt ge add radd sub rsub mul rmul truediv floordiv mod pow and or xor neg pos abs invert "
    "format setattr delattr"
).split():
    setattr(LeftBehind, f"__{_operation}__", LeftBehind._refuse)


def left_behind(kind, reason):
    return LeftBehind(kind, reason)


def explain(error):
    """Returns the reason that an error is."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply to be copied"
    return str(error) or type(error).__name__


class Absent(type):
    """The type of what replaces a class or function that this tier lacks."""

    def __call__(cls, *args, **kwargs):
        return cls.__new__(cls)

    def __getattr__(cls, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        LeftBehind(*cls.absent)._refuse()

    def __repr__(cls):
        return repr(LeftBehind(*cls.absent))


def absent(name, reason):
    """Returns the replacement. It is noted once for the variable that names it, and again
    for every further value that it would make."""
    definitions.lost(name, reason)
    noted = [definitions.losses.name]

    def __new__(cls, *args, **kwargs):
        if not definitions.losses:
            LeftBehind(name, reason)._refuse()
        if noted.pop() if noted else None != definitions.losses.name:
            definitions.lost(name, reason)
        return Hollow(name, reason)

    return Absent(name, (), {"__new__": __new__, "absent": (name, reason)})


class Hollow(LeftBehind):
    """A LeftBehind that accepts all operations of a stream on a new object."""

    __slots__ = ()

    def __setstate__(self, state):
        pass

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def __setitem__(self, key, value):
        pass
