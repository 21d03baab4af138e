# Runs the guest's half in a plain CPython: python differential.py GUEST. It
# writes a line of JSON for each type: its name, its schema, and values. Each line
# that comes back is the list of what the host made of the values, null where it
# refused; then the types are made of them, and their repr is printed.
import sys
import types

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
rlm = sys.modules["_rlm"] = types.ModuleType("_rlm")
rlm.HostError, rlm.call, rlm.call_str = type("HostError", (Exception,), {}), lambda request: b"", lambda request: ""

import dataclasses
import datetime
import enum
import json
from typing import Any, Dict, List, Literal, NamedTuple, Optional, Set, Tuple, TypedDict, Union

import contracts
import models


class Severity(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


@dataclasses.dataclass
class Tree:
    value: int
    children: List["Tree"] = dataclasses.field(default_factory=list)


class Row(NamedTuple):
    id: int
    name: str = "n"


class Movie(TypedDict, total=False):
    title: str
    year: int


class Finding(models.BaseModel):
    title: str = models.Field(min_length=1)
    severity: Severity = Severity.LOW
    points: List[Point] = []
    parent: Optional["Finding"] = None


VALUES = [
    None, True, 0, 1, 2.0, 2.5, "1", "1.5", "true", "low", "HIGH", "x", "", [], [1], ["1", 2], [[1, "a"]], [1, "a"], {}, {"x": "1"}, {"x": 1, "y": 2},
    {"a": 1}, {"1": 2}, {"low": "3"}, {"id": 3}, {"title": "t"}, {"title": "t", "year": "1999"}, {"value": 1, "children": [{"value": "2"}]},
    {"title": "f", "severity": "high", "points": [{"x": 1}], "parent": {"title": "p"}}, {"title": ""}, {"points": 3}, "2024-02-29", "2024-02-30",
    "2024-02-29T10:00:00", "2024-02-29T10:00:00Z", "[1, 2]", {"value": 1, "children": [{}]},
]
TYPES = {
    "bool": bool, "int": int, "float": float, "str": str, "Any": Any, "None": None, "List[int]": List[int], "Dict[str, int]": Dict[str, int],
    "Dict[int, float]": Dict[int, float], "Dict[Severity, int]": Dict[Severity, int], "Optional[int]": Optional[int], "Set[int]": Set[int],
    "Union[int, str]": Union[int, str], "Union[Point, Row]": Union[Point, Row], "Tuple[int, str]": Tuple[int, str], "Tuple[int, ...]": Tuple[int, ...],
    "List[Tuple[int, str]]": List[Tuple[int, str]], "Literal": Literal["x", 1, True], "Severity": Severity, "Number": Number, "Point": Point, "Tree": Tree, "Row": Row, "Movie": Movie,
    "Finding": Finding, "List[Finding]": List[Finding], "date": datetime.date, "datetime": datetime.datetime,
    "shape": {"title": str, "year": Optional[int]}, "Optional[Point]": Optional[Point],
}
readers = []
for name, t in TYPES.items():
    schema, rebuild = contracts.to_schema(t)
    readers.append((name, rebuild))
    print(json.dumps({"name": name, "schema": json.loads(schema), "values": VALUES}))
print("", flush=True)
for name, rebuild in readers:
    for value in json.loads(sys.stdin.readline()):
        if value is not None:
            made = rebuild(value["value"])
            print(name, json.dumps(value["value"], sort_keys=True), "=>", repr(made))
