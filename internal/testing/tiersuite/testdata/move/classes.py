import abc
import dataclasses
import enum
import functools
import typing
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypedDict, TypeVar

T = TypeVar("T")


class Registry:
    known = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Registry.known[cls.__name__] = cls


class Base(Registry):
    """A base."""

    count = 0

    def __init__(self, name):
        self.name = name
        type(self).count += 1

    def greet(self):
        return f"I am {self.name}"

    @property
    def upper(self):
        return self.name.upper()

    @upper.setter
    def upper(self, value):
        self.name = value.lower()

    @classmethod
    def make(cls, name):
        return cls(name)

    @staticmethod
    def helper(x):
        return x * 2

    @functools.cached_property
    def size(self):
        return len(self.name)


class Child(Base):
    def greet(self):
        return super().greet() + ", a child"

    def __eq__(self, other):
        return isinstance(other, Child) and self.name == other.name

    __hash__ = None


class Slots:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side ** 2


class Meta(type):
    def __new__(mcs, name, bases, namespace):
        print("made", name)
        return super().__new__(mcs, name, bases, namespace)

    def describe(cls):
        return f"{cls.__name__} by {type(cls).__name__}"


class Made(metaclass=Meta):
    value = 1


class Box(Generic[T]):
    def __init__(self, item: T):
        self.item = item


@dataclass(order=True)
class Point:
    x: int
    y: int = 0
    tags: list = field(default_factory=list, compare=False)

    def norm(self):
        return (self.x ** 2 + self.y ** 2) ** 0.5


@dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: str = "b"


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"

    def nice(self):
        return self.name.title()


class Flags(enum.IntFlag):
    A = 1
    B = 2


class Level(enum.IntEnum):
    LOW = enum.auto()
    HIGH = enum.auto()


Pair = namedtuple("Pair", "left right", defaults=[0])


class Row(NamedTuple):
    id: int
    name: str = "n"

    def label(self):
        return f"{self.id}:{self.name}"


class Movie(TypedDict, total=False):
    title: str


class Failure(ValueError):
    def __init__(self, code, detail):
        super().__init__(code, detail)
        self.code = code


class Node:
    def __init__(self, value, parent=None):
        self.value, self.parent, self.children = value, parent, []
        if parent is not None:
            parent.children.append(self)


b, c = Base("b"), Child.make("kid")
b.self = b
s = Slots(1, 2)
q = Square(3)
box = Box[int](7)
p, r = Point(3, 4), Point(1)
f = Frozen(5)
root = Node(1)
leaf = Node(2, root)
objects = [b, c, p, p, Colour.RED, Flags.A | Flags.B, Level.HIGH, Pair(1), Row(2), Failure(7, "d"), Colour]
method = c.greet
# --- the next snippet ---
print(b.greet(), c.greet(), Child.count, Base.count, b.self is b, isinstance(c, Base), Child.__mro__[1] is Base)
print(b.upper, b.size, Base.helper(4), sorted(Registry.known), Registry.known["Child"] is Child, method())
b.upper = "NEW"
print(b.name, c == Child("kid"), Base.__doc__, s.x, s.y, Square(2).area(), q.area())
try:
    Shape()
except TypeError as error:
    print("abstract", "area" in str(error))
print(Made.describe(), Made.value, box.item, Box.__parameters__[0] is T)
print(p, p.norm(), p > r, dataclasses.replace(p, y=1), dataclasses.asdict(r), objects[2] is objects[3], objects[2] is p)
print([x.name for x in dataclasses.fields(Point)], Point(1).tags is Point(1).tags, Point.__match_args__)
try:
    f.a = 1
except dataclasses.FrozenInstanceError:
    print("frozen", f, hash(f) == hash(Frozen(5)), hasattr(f, "__dict__"))
print(objects[4] is Colour.RED, Colour("g"), Colour.GREEN.nice(), list(Colour), objects[10] is Colour)
print(objects[5], Flags(3) == objects[5], objects[6] is Level.HIGH, Level.HIGH + 1, Level(1))
print(objects[7], Pair(1).right, Row(5).label(), objects[8]._replace(name="m"), Row.__annotations__["id"])
print(Movie(title="x"), Movie.__total__, objects[9].code, objects[9].args, repr(objects[9]))
print(leaf.parent is root, root.children[0] is leaf, root.children[0].value)
match p:
    case Point(x, y):
        print("matched", x, y)


class Grand(Child):
    pass


print(sorted(Registry.known))
# --- the next snippet ---
print(Grand("g").greet(), Child.count, objects[4] is Colour.RED, p == Point(3, 4), Point.norm(p))
print(sorted(Registry.known), Registry.known["Grand"] is Grand)
