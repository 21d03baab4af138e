# functools: partial, reduce, caches, wraps, dispatch, ordering.
import functools as ft
import sys

print(ft.reduce(lambda a, b: a * 10 + b, [1, 2, 3]), ft.reduce(max, [3, 9, 2], 5), ft.reduce(lambda a, b: a + [b], "ab", []))
p = ft.partial(int, base=2)
print(p("101"), p.func, p.args, p.keywords, ft.partial(ft.partial(pow, 2), 5)(), p("11", base=3))


@ft.lru_cache(maxsize=2)
def sq(x):
    print("computing", x)
    return x * x


print(sq(2), sq(3), sq(2), sq(4), sq(3), sq.cache_info())
sq.cache_clear()
print(sq.cache_info(), sq.cache_parameters(), sq.__wrapped__(9))


@ft.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(90), fib.cache_info().hits)


@ft.singledispatch
def show(v):
    return f"obj {v}"


@show.register
def _(v: int):
    return f"int {v}"


@show.register(list)
@show.register(tuple)
def _(v):
    return f"seq {len(v)}"


@show.register
def _(v: str | bytes):
    return "text"


print(show(1.5), show(3), show(True), show([1]), show((1, 2)), show(b""), show.dispatch(bool)(0), sorted(t.__name__ for t in show.registry))


class Fmt:
    @ft.singledispatchmethod
    def of(self, v):
        return "any"

    @of.register
    def _(self, v: int):
        return "int"

    def base(self, a, b=2):
        return a, b

    two = ft.partialmethod(base, b=5)


print(Fmt().of(1), Fmt().of("x"), Fmt().two(1))


@ft.total_ordering
class V:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return self.v == o.v

    def __lt__(self, o):
        return self.v < o.v


print(V(1) <= V(1), V(2) >= V(1), V(2) > V(3), V(1) != V(1))


class L:
    runs = 0

    @ft.cached_property
    def v(self):
        L.runs += 1
        return 5


o = L()
print(o.v, o.v, L.runs, o.__dict__)
del o.v
print(o.v, L.runs, sorted(["b", "A"], key=ft.cmp_to_key(lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))))


def wrapped():
    "Doc."


@ft.wraps(wrapped)
def w():
    pass


print(w.__name__, w.__doc__, w.__wrapped__ is wrapped, ft.WRAPPER_ASSIGNMENTS)
for bad in (lambda: ft.reduce(max, []), lambda: sq([]), lambda: ft.partial(), lambda: ft.partial(5), lambda: show()):
    try:
        bad()
    except TypeError as e:
        print(e)
print(repr(ft.partial(print, "x", sep="")).startswith("functools.partial(<built-in function print>"))


@ft.lru_cache(None)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


sys.setrecursionlimit(100_000)
print(len(str(fibonacci(1600))))
