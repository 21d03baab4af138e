from __future__ import annotations

import enum
from typing import Annotated, ClassVar, Dict, Generic, List, Literal, Optional, TypeVar, Union

import rlm_models
from rlm_models import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, conint, field_validator, model_validator, validator


class Severity(str, enum.Enum):
    LOW = "low"
    HIGH = "high"


class Line(BaseModel):
    number: int = Field(ge=1, description="counted from one")
    text: str = ""


class Finding(BaseModel):
    """Something that was found."""

    title: str = Field(..., min_length=1, max_length=20)
    severity: Severity = Severity.LOW
    lines: List[Line] = Field(default_factory=list)
    tags: List[str] = []
    score: Optional[float] = None
    parent: Optional[Finding] = None
    kinds: ClassVar[int] = 3

    @field_validator("title")
    @classmethod
    def strip(cls, value):
        return value.strip()

    @property
    def loud(self):
        return self.title.upper()


class Base(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    a: int


class Derived(Base):
    b: conint(ge=0) = 1
    kind: Literal["derived"] = "derived"


class Range(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def ordered(self):
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Old(BaseModel):
    n: int

    class Config:
        extra = "allow"

    @validator("n", pre=True)
    def halve(cls, value):
        return value // 2


class Aliased(BaseModel):
    from_: str = Field(alias="from")


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: List[T]


def refused(make):
    try:
        print("made", make())
    except ValidationError as error:
        print(error)


f = Finding(title=" leak ", lines=[{"number": "3"}, Line(number=4)], severity="high")
print(f)
print(repr(f), f.loud, f.kinds, f.severity is Severity.HIGH, type(f.lines[0]) is Line)
print(f.model_dump())
print(f.model_dump(exclude_none=True, exclude_defaults=True), f.model_dump(include={"title"}), f.dict(exclude={"lines", "tags"}))
print(f.model_dump_json())
print(Finding.model_validate(f.model_dump()) == f, Finding.model_validate_json(f.model_dump_json()) == f, Finding.parse_raw(f.json()) == f)
print(f == Finding(title="leak"), f != f.model_copy(update={"title": "x"}), f.model_copy(deep=True) == f, f == 3)
print(Finding(title="a").tags is Finding(title="a").tags, sorted(f.model_fields_set), list(Finding.model_fields))
print(Finding.model_json_schema())
refused(lambda: Finding(title="", lines=[{"number": 0}, {"text": 1}], severity="mid"))
refused(lambda: Finding(**{"title": "x" * 21}))
refused(lambda: Finding.model_validate([1]))
refused(lambda: Finding.model_validate_json("{"))
refused(lambda: Base(a=1, c=2))
refused(lambda: setattr(Base(a=1), "a", 2))
refused(lambda: Range(low=3, high=2))
print(Derived(a=1), hash(Derived(a=1)) == hash(Derived(a=1)), Derived(a=1) == Base(a=1), isinstance(Derived(a=1), Base))
print(Range(low=1, high=2), Old(n=9, extra=1), Aliased(**{"from": "x"}), Aliased(from_="y").model_dump(by_alias=True), Page[int](items=[1]))
print(dict(Line(number=1)), Line.model_construct(number=-1), [name for name, _ in Line(number=2)])
try:
    f.unknown = 1
except ValueError as error:
    print(error)
f.title = "set"
print(f.title)
adapter = TypeAdapter(List[Union[Range, Line]])
print(adapter.json_schema())
print(adapter.validate_python([{"number": 2}, {"low": 1, "high": 2}]))
match f:
    case Finding(title=title, lines=[first, *_]):
        print("matched", title, first)
try:
    from rlm_models import create_model
except ImportError as error:
    print(type(error).__name__, str(error).split(" (")[0])
everything = [f, f, Derived(a=5), Range(low=1, high=2)]
shared = f.lines
# --- the next snippet ---
print(everything[0] is everything[1], everything[0].lines is shared, everything)
print(repr(f), f.loud, Finding(title=" again ").title, f == Finding.model_validate(f.model_dump()))
print(Finding.model_json_schema()["$defs"]["Finding"]["properties"]["parent"], Derived(a=2), type(everything[2]) is Derived)
refused(lambda: Range(low=3, high=2))
refused(lambda: Base(a="x"))


class Further(Finding):
    more: Dict[str, Line] = {}


g = Further(title="g", more={"k": {"number": 1}}, parent=f)
print(g.model_dump(exclude={"parent"}), g.parent is f, sorted(g.model_fields_set))
# --- the next snippet ---
print(g.more["k"], g.parent is f, g.parent.lines is shared, g.model_copy(deep=True) == g, Further.model_fields["title"].max_length)
print(adapter.validate_python([{"number": 3}]), conint(ge=2) == Optional[int])
print(TypeAdapter(Further).validate_python({"title": "h", "severity": "low"}), sorted(g.model_fields_set))
import decimal
print(TypeAdapter(List[Union[decimal.Decimal, str]]).validate_json('[1234567890123456.78, 1.10, "a"]'))
class Price(BaseModel):
    amount: decimal.Decimal
    rate: Union[int, float]
    more: list
print(Price.model_validate_json('{"amount": 1234567890123456.78, "rate": 3.0, "more": [0.5]}'))
print([type(x).__name__ for x in TypeAdapter(List[Union[bool, float]]).validate_json('[1.0, 0.5]')])
