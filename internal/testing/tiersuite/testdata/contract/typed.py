import dataclasses
import datetime
import decimal
import enum
import json
import typing
import uuid
from typing import Annotated, Any, Dict, List, Literal, NamedTuple, NewType, Optional, Set, Tuple, TypedDict, TypeVar, Union

from rlm_models import BaseModel, Field, TypeAdapter


def show(t, *values):
    adapter = TypeAdapter(t)
    print(json.dumps(adapter.json_schema()))
    for value in values:
        try:
            print("  ", repr(adapter.validate_python(value)))
        except ValueError as error:
            print("  ", type(error).__name__, *str(error).split("\n")[1:])


class Severity(enum.Enum):
    """How bad."""

    LOW = "low"
    HIGH = "high"


class Code(enum.IntEnum):
    OK = 200
    GONE = 410


class Odd(enum.Enum):
    A = (1, 2)
    B = (3, 4)


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5
    tags: List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    value: int
    children: List["Tree"] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Picky:
    n: int

    def __post_init__(self):
        if self.n < 0:
            raise ValueError("below zero")


class Row(NamedTuple):
    id: int
    name: str = "n"


class Movie(TypedDict, total=False):
    title: str
    year: int


class Strict(TypedDict):
    a: int


UserId = NewType("UserId", int)
T = TypeVar("T")

show(bool, True, "yes", "perhaps")
show(int, 3, "4", 5.0, 5.5, True)
show(float, 3, "2.5", "x")
show(str, "a", 1)
show(None, None)
show(Any, [1, {"a": None}])
show(list, [1, "a"])
show(List[int], [1, "2"], "12", [1, "x", "y"])
show(Dict[str, int], {"a": 1, "b": "2"}, {"a": "x"})
show(Dict[int, str], {"1": "a"})
show(Dict[Severity, int], {"low": 1})
show(Dict[Literal["a", "b"], bool], {"a": True})
show(Tuple[str, float], ["a", 1], ["a"])
show(Tuple[int, ...], [1, 2, 3])
show(Set[int], [3, 3])
show(typing.FrozenSet[str], ["a"])
show(Optional[int], None, 3, "x")
show(Union[int, str], 3, "3", None)
show(Union[Point, Row], {"x": 1, "y": 2}, {"id": 1, "name": "a"})
show(Literal["a", 1, True, None], "a", 1, True, None, "A", "z")
show(Annotated[int, Field(ge=1, le=5, description="a grade")], 3, 9)
show(Annotated[List[int], Field(min_length=1)], [1], [])
show(Annotated[str, Field(pattern="^[a-z]+$"), "a word"], "abc", "A1")
show(Severity, "low", "HIGH", "mid")
show(Code, 200, "410")
show(Odd, "A")
show(Point, {"x": 1}, {"x": "2", "y": 1, "tags": ["t"]}, {"y": "z"}, Point(1))
show(Tree, {"value": 1, "children": [{"value": 2}]})
show(Picky, {"n": 1}, {"n": -1})
show(Row, {"id": 7})
show(Movie, {"title": "t"}, {"year": "x"})
show(Strict, {"a": 1}, {})
show(UserId, 7)
show(T, "anything")
show(datetime.date, "2024-02-29", "2024-02-30")
show(datetime.datetime, "2024-02-29T10:00:00Z", "2024-02-29T10:00:00")
show(datetime.time, "10:30:00")
show(datetime.timedelta, 90)
show(decimal.Decimal, "1.50", 2)
show(uuid.UUID, "12345678-1234-5678-1234-567812345678")
show({"name": str, "age": Optional[int]}, {"name": "a", "age": None}, {"name": "a"})
show({"answer": "str", "parts": "list[Point]"}, {"answer": "a", "parts": [{"x": 1}]})
show([Point], [{"x": 1}])
show("List[Point]", [{"x": 1}])
show("bool", True)
show({"type": "array", "items": {"type": "boolean"}}, [True])
for wrong in (3.5, print, object(), {"a": 1, "b": int}, Dict[float, int], complex):
    try:
        TypeAdapter(wrong)
        print("understood", wrong)
    except TypeError as error:
        print("TypeError", str(error).split(" at 0x")[0])
