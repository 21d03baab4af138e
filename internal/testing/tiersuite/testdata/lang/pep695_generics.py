# Type parameters, type aliases and their laziness.
from typing import TypeAliasType, get_args, get_origin


class Stack[T]:
    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T) -> "Stack[T]":
        self.items.append(item)
        return self

    def pop(self) -> T:
        return self.items.pop()


def first[T](items: list[T]) -> T:
    return items[0]


def pair[K: (int, str), *Ts, **P](k: K) -> K:
    return k


type Json = None | bool | int | str | list[Json] | dict[str, Json]
type Pairs[A, B = int] = list[tuple[A, B]]
type Late = Undefined | int

assert Stack[int]().push(1).push(2).pop() == 2
assert first([7, 8]) == 7 and pair("k") == "k"
print(Stack.__type_params__, first.__type_params__, pair.__type_params__)
print(pair.__type_params__[0].__constraints__, pair.__type_params__[0].__bound__)
print(Json, isinstance(Json, TypeAliasType), Json.__name__)
print(Json.__value__)
print(Pairs.__type_params__, Pairs[str, bytes], get_args(Pairs[str, bytes]), get_origin(Pairs[str]) is Pairs)
print(Pairs.__type_params__[1].__default__)
print(Stack[int].__origin__.__name__, Stack[int].__args__, Stack.__orig_bases__)
try:
    Late.__value__
except NameError as e:
    print("lazy:", e)
Undefined = str
print(Late.__value__)


class Tree[T: Json](Stack[T]):
    pass


print(Tree.__mro__[1].__name__, Tree.__type_params__[0].__bound__)
print(Tree.__orig_bases__)
