# typing: introspection and runtime behaviour.
import typing as t
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, Self, TypedDict, TypeVar, Union, get_args, get_origin, get_type_hints


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Emp(NamedTuple):
    name: str
    id: int = 3

    def hi(self):
        return f"hi {self.name}"


print(Movie(title="x"), Movie.__required_keys__, Movie.__optional_keys__, Movie.__total__, Emp("a"), Emp("a").hi(), Emp._field_defaults, Emp.__annotations__)
print(get_args(dict[str, list[int]]), get_origin(list[int]), get_origin(Optional[int]), get_args(Optional[int]), Union[int, str, int], int | None, Optional[int] == int | None, Union[int], Literal[1, "a"], get_args(Literal[1, 2]))
print(list[int], t.List[int], Callable[[int], str], t.Callable[..., Any], Annotated[int, "meta"].__metadata__, Annotated[int, "m"], tuple[int, ...], type[int], Iterator[str], dict[str, Any])


def f(a: int, b: "list[str]" = None, *c: Self, **d: Final) -> Optional["Emp"]: ...


print(get_type_hints(f)["b"], get_type_hints(f)["return"], f.__annotations__["b"], get_type_hints(Movie), get_type_hints(Movie, include_extras=True))
T = TypeVar("T", bound=int)


class Box(Generic[T]):
    def __init__(self, v: T):
        self.v = v


print(Box[int](3).v, Box[int], Box.__parameters__, T, T.__bound__, Box[int].__args__, list[T][int], dict[str, T].__parameters__)
UserId = NewType("UserId", int)
print(UserId(5), UserId.__name__, UserId.__supertype__, t.cast(str, 5), t.TYPE_CHECKING, t.is_typeddict(Movie), t.assert_type(1, int))
for bad in (lambda: isinstance(1, list[int]), lambda: Union[()], lambda: Literal, lambda: Box[int, str], lambda: list[int]() and 1, lambda: isinstance(1, t.List[int]), lambda: t.assert_never(1), lambda: Optional[1, 2], lambda: int | 5, lambda: Any(), lambda: T[int], lambda: isinstance({}, Movie)):
    try:
        print(bad())
    except (TypeError, AssertionError) as e:
        print(type(e).__name__, e)
print(isinstance(1, int | str), isinstance("x", (int | None)), issubclass(bool, int | str), list[int]([1, "not checked"]), (int | str).__args__, type(int | str).__name__)


@t.overload
def g(x: int) -> int: ...
@t.overload
def g(x: str) -> str: ...
def g(x):
    return x


@t.final
class Fin: ...


@t.no_type_check
def n(x: "bad hint("): ...


class Child(Movie, total=False):
    stars: int


print(g(1), len(t.get_overloads(g)), Fin.__final__, Child.__required_keys__, sorted(Child.__annotations__), t.get_protocol_members(t.SupportsInt), isinstance(1, t.SupportsInt), isinstance("", t.Sized))
print(Annotated[Annotated[int, 1], 2] == Annotated[int, 1, 2], t.Concatenate, t.ParamSpec("P").args, t.TypeVarTuple("Ts"), t.Unpack, t.TypeGuard[int], t.ClassVar[int], t.ReadOnly)
