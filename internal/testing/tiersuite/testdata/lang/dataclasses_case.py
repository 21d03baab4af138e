# Dataclasses: defaults, ordering, frozen, slots, kw_only, replace, asdict.
from dataclasses import KW_ONLY, FrozenInstanceError, InitVar, asdict, astuple, dataclass, field, fields, make_dataclass, replace
from typing import ClassVar


@dataclass(order=True)
class Item:
    sort_key: tuple = field(init=False, repr=False)
    name: str
    price: float = 0.0
    tags: list[str] = field(default_factory=list)
    count: ClassVar[int] = 0

    def __post_init__(self):
        self.sort_key = (self.price, self.name)
        Item.count += 1


a, b = Item("pen", 1.5), Item("book", 12, ["x"])
print(a, b, a < b, Item.count, a == Item("pen", 1.5))
print(asdict(b), astuple(a))
print([f.name for f in fields(Item)])
print(Item("z"))


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0

    def moved(self, dx):
        return replace(self, x=self.x + dx)


p = Point(1)
print(p.moved(4), hash(p) == hash(Point(1)), {p: "in dict"}[Point(1, 0)], Point.__slots__)
try:
    p.x = 3
except FrozenInstanceError as e:
    print(type(e).__name__, e)


@dataclass
class Conf:
    path: str
    _: KW_ONLY
    depth: int = 3
    seed: InitVar[int] = 7
    derived: int = field(init=False, default=0)

    def __post_init__(self, seed):
        self.derived = seed * self.depth


print(Conf("p", depth=2), Conf("p", seed=1).derived)
try:
    Conf("p", 2)
except TypeError as e:
    print(e)
try:
    @dataclass
    class Bad:
        xs: list = []
except ValueError as e:
    print(e)
try:
    @dataclass
    class Bad2:
        a: int = 1
        b: int
except TypeError as e:
    print(e)


@dataclass
class Child(Conf):
    extra: str = "e"


print(Child("q"), Child.__match_args__)
D = make_dataclass("D", [("x", int), ("y", int, field(default=5))])
print(D(1), D(1) == D(1, 5))


@dataclass(repr=False, eq=False)
class Plain:
    x: int


print(Plain(1) == Plain(1))


@dataclass
class Node:
    v: int
    nxt: "Node | None" = None


n = Node(1, Node(2))
print(n, asdict(n))
n.nxt.nxt = n
print(n)
