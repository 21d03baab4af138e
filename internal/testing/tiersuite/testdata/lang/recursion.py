# Recursive algorithms and the recursion limit as an ordinary exception.
import functools
import sys


def hanoi(n, a="A", b="B", c="C"):
    return [] if n == 0 else hanoi(n - 1, a, c, b) + [(a, c)] + hanoi(n - 1, b, a, c)


print(len(hanoi(8)), hanoi(2))


def perms(xs):
    if not xs:
        yield []
    for i, x in enumerate(xs):
        for rest in perms(xs[:i] + xs[i + 1:]):
            yield [x] + rest


print(list(perms([1, 2, 3])), sum(1 for _ in perms(list(range(6)))))


def ack(m, n):
    return n + 1 if m == 0 else ack(m - 1, 1) if n == 0 else ack(m - 1, ack(m, n - 1))


print(ack(2, 3))


@functools.cache
def paths(r, c):
    return 1 if 0 in (r, c) else paths(r - 1, c) + paths(r, c - 1)


print(paths(16, 16), paths.cache_info().misses)
even = lambda n: n == 0 or odd(n - 1)
odd = lambda n: n != 0 and even(n - 1)
print(even(100), odd(101))


def forever(n):
    return forever(n + 1)


try:
    forever(0)
except RecursionError as e:
    print(e, isinstance(e, RuntimeError))


def depth(n):
    try:
        return depth(n + 1)
    except RecursionError:
        return n


assert 300 < depth(0) <= 1000
old = sys.getrecursionlimit()
print(old)
sys.setrecursionlimit(300)
try:
    assert depth(0) < 300
finally:
    sys.setrecursionlimit(old)
for bad in (0, -1, "x"):
    try:
        sys.setrecursionlimit(bad)
    except (ValueError, TypeError) as e:
        print(type(e).__name__)


class R:
    def __repr__(self):
        return repr(self)

    def __getattr__(self, n):
        return getattr(self, n + "x")


for action in (lambda: repr(R()), lambda: R().y):
    try:
        action()
    except RecursionError:
        print("caught", end=" ")
l = []
l.append(l)
d = {"d": None}
d["d"] = d
print(l, d, l == l, (l,))
try:
    l == [[l]] and print("equal?")
except RecursionError as e:
    print(type(e).__name__)


def queens(n, row=0, cols=(), d1=(), d2=()):
    if row == n:
        return 1
    return sum(queens(n, row + 1, cols + (c,), d1 + (row + c,), d2 + (row - c,)) for c in range(n) if c not in cols and row + c not in d1 and row - c not in d2)


print(queens(6))
