# Structural pattern matching.
from dataclasses import dataclass
from enum import Enum


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: int
    y: int


def kind(v):
    match v:
        case None | True | False:
            return f"singleton {v}"
        case Color.RED:
            return "red"
        case Color():
            return f"other colour {v.name}"
        case int(n) if n < 0:
            return f"negative {n}"
        case 0 | 1 | 2:
            return "small"
        case int() | float() as number:
            return f"number {number}"
        case "":
            return "empty str"
        case str() as s:
            return f"str {s!r}"
        case Point(0, 0):
            return "origin"
        case Point(x=0, y=yy):
            return f"on y at {yy}"
        case Point(a, b) if a == b:
            return f"diagonal {a}"
        case Point():
            return "point"
        case []:
            return "empty sequence"
        case [one]:
            return f"one {one}"
        case [first, [inner, *_], *rest]:
            return f"nested {first} {inner} {rest}"
        case [first, *middle, last]:
            return f"{first}..{last} around {middle}"
        case {"type": "move", "to": [x, y], **others}:
            return f"move {x},{y} {sorted(others)}"
        case {"type": t}:
            return f"type {t}"
        case {}:
            return "mapping"
        case _:
            return "unknown"


for v in (None, True, Color.RED, Color.BLUE, -5, 1, 7, 2.5, "", "hé", Point(0, 0), Point(0, 3), Point(4, 4),
          Point(1, 2), [], (1,), [1, [2, 3], 4], [1, 2, 3], (1, 2), {"type": "move", "to": (1, 2), "z": 0},
          {"type": "x"}, {"q": 1}, {1, 2}, b"bytes", object):
    print(repr(v)[:40], "=>", kind(v))


class Range:
    __match_args__ = ("lo", "hi")

    def __init__(self, lo, hi):
        self.lo, self.hi = lo, hi


match Range(1, 9):
    case Range(lo, hi=9):
        print("range", lo)

match command := "go north".split():
    case ["go", ("north" | "south") as direction]:
        print(direction, command)

try:
    match Range(1, 2):
        case Range(1, 2, 3):
            pass
except TypeError as e:
    print(e)
match = case = type = 1  # soft keywords stay names
print(match + case + type)
