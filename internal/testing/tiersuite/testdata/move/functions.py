import functools
import operator
import re


def plain(x, y=[1], *rest, scale: int = 2, **more) -> int:
    """Doc."""
    return (x + len(y) + sum(rest)) * scale + len(more)


plain.tag = "t"


def counter():
    n = 0

    def up(by=1):
        nonlocal n
        n += by
        return n

    def now():
        return n

    return up, now


up, now = counter()
up(5)


def fact(n):
    return 1 if n < 2 else n * fact(n - 1)


def outer():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    return even


even = outer()
add = lambda a, b: a + b
two = [lambda: 1, lambda: 2]; both = two + two
double = functools.partial(operator.mul, 2)


def trace(f):
    @functools.wraps(f)
    def wrapper(*args):
        calls.append(f.__name__)
        return f(*args)

    return wrapper


calls = []


@trace
def hello(name):
    return f"hello {name}"


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def squares(n):
    for i in range(n):
        yield i * i


async def later(x):
    return x + 1


def uses_global():
    return base * 2


base = 21
word = re.compile(r"\w+", re.I)
exec("def made(x): return x + base")
table = {"plain": plain, "print": print, "len": len, "sorted": sorted}
bound = "abc".upper
# --- the next snippet ---
print(plain(1), plain(1, scale=3), plain(1, [1, 2], 5, k=1), plain.__doc__, plain.tag, plain.__annotations__)
print(up(), now(), up(2), now())
print(fact(20), even(10), even(7), add(1, 2), [f() for f in both], both[0] is both[2], double(21))
print(hello("x"), calls, hello.__name__, hello.__wrapped__("y"), fib(50))
print(list(squares(4)), uses_global(), made(1), word.findall("a b_c"), table["plain"] is plain, bound())
base = 5
print(uses_global(), made(1), table["len"]([1]))
# --- the next snippet ---
import inspect

print(up(), now(), inspect.getsource(fact).splitlines()[0], plain.__defaults__)
import asyncio

print(asyncio.run(later(1)))
