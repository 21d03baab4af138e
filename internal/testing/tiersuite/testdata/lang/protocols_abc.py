# Abstract base classes and protocols.
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, MutableSequence, Sequence, Sized
from typing import Protocol, runtime_checkable


class Shape(ABC):
    @abstractmethod
    def area(self): ...

    @property
    @abstractmethod
    def name(self): ...

    def describe(self):
        return f"{self.name} {self.area()}"


class Sq(Shape):
    name = "square"

    def __init__(self, s):
        self.s = s

    def area(self):
        return self.s ** 2


print(Sq(3).describe())
try:
    Shape()
except TypeError as e:
    print(e)


class Half(Shape):
    def area(self):
        return 1


try:
    Half()
except TypeError as e:
    print(e)


@runtime_checkable
class Quacks(Protocol):
    loud: bool

    def quack(self) -> str: ...


class Duck:
    loud = True

    def quack(self):
        return "quack"


print(isinstance(Duck(), Quacks), isinstance(3, Quacks))
try:
    Quacks()
except TypeError as e:
    print(e)
try:
    issubclass(Duck, Quacks)
except TypeError as e:
    print(str(e).splitlines()[0])


class Deck(MutableSequence):
    def __init__(self, *v):
        self.v = list(v)

    def __getitem__(self, i):
        return self.v[i]

    def __setitem__(self, i, x):
        self.v[i] = x

    def __delitem__(self, i):
        del self.v[i]

    def __len__(self):
        return len(self.v)

    def insert(self, i, x):
        self.v.insert(i, x)


d = Deck(1, 2, 3)
d.append(4)
d.extend([5])
d.reverse()
d.remove(1)
print(d.v, d.pop(), d.index(4), 3 in d, list(reversed(d)), d.count(3))
d += [9]
print(d.v, isinstance(d, Sequence))


class Lower(Mapping):
    def __init__(self, d):
        self.d = {k.lower(): v for k, v in d.items()}

    def __getitem__(self, k):
        return self.d[k.lower()]

    def __iter__(self):
        return iter(self.d)

    def __len__(self):
        return len(self.d)


m = Lower({"A": 1, "b": 2})
print(m["a"], m.get("Z", 0), "B" in m, dict(m), m == {"a": 1, "b": 2}, list(m.items()))


class Sz:
    def __len__(self):
        return 1


print(isinstance(Sz(), Sized), isinstance([], Hashable), issubclass(dict, Iterable), isinstance("", Sequence))


class Virtual:
    pass


Shape.register(Virtual)
print(isinstance(Virtual(), Shape), Virtual.__mro__[1])


class Any_(ABC):
    @classmethod
    def __subclasshook__(cls, c):
        return True if hasattr(c, "marker") else NotImplemented


class Marked:
    marker = 1


print(issubclass(Marked, Any_), issubclass(int, Any_), Shape.__abstractmethods__ == {"area", "name"})
