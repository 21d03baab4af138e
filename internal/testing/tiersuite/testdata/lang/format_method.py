# str.format and format().
from collections import namedtuple
from datetime import datetime

P = namedtuple("P", "x y")
print("{} {} {}".format(1, "a", None), "{1} {0} {1}".format("a", "b"), "{a} {b[k]} {c.x} {d[0]}".format(a=1, b={"k": 2}, c=P(3, 4), d=[5]))
print("{:>8}|{:<8}|{:^8}|{:*^8}|{:=+8d}|{:08.2f}|{:,}|{:_}|{:%}|{:e}|{:#x}|{:c}|{:n}".format("r", "l", "c", "m", 5, 3.14159, 1234567, 1234567, 0.5, 12345.678, 255, 65, 1000))
print("{!r} {!s} {!a} {0!r:>10}".replace("{0!r:>10}", "").format("é", "é", "é"), "{{}} {}".format(1), "{:{}}|{:{w}.{p}}".format("x", 5, 3.14159, w=8, p=3), "{:%Y-%m-%d}".format(datetime(2024, 1, 2)))
print(format(5), format("x", ">3"), format(3.0, ".0f"), format(-5, "=+5"), format(True, "d"), format(None), format([1], ""), format(1e-7), format(12345.6789, ",.1f"), format(255, "b"), format(0.1, ".3"), format(1j, ".1f"))
print("{0[a]} {0[b c]} {1[1]}".format({"a": 1, "b c": 2}, [1, 2]), "{x.__class__.__name__}".format(x=1), "{:.3}".format("abcdef"), "{:5}|{:5}".format("a", 1), "{:<05}".format(3), "{:é>4}".format("x"))
print("{a} {b}".format_map({"a": 1, "b": 2}))


class D(dict):
    def __missing__(self, k):
        return f"?{k}?"


print("{a} {zz}".format_map(D(a=1)))
for fmt, args in (("{", ()), ("}", ()), ("{}", ()), ("{0} {}", (1, 2)), ("{k}", ()), ("{:q}", (1,)), ("{:d}", ("x",)), ("{:d}", (1.5,)), ("{!x}", (1,)), ("{[0]}", (5,)), ("{.q}", (5,)), ("{:s}", (5,)), ("{:,x}", (5,)), ("{:>5}", ([],)), ("{:.2d}", (1,)), ("{:10.5.2}", (1,)), ("{0[}", (1,))):
    try:
        print(fmt.format(*args))
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as e:
        print(repr(fmt), type(e).__name__, e)


class F:
    def __format__(self, s):
        return f"F<{s}>"


class Bad:
    def __format__(self, s):
        return 5


print("{:abc} {:>{}}".format(F(), F(), 7))
try:
    format(Bad())
except TypeError as e:
    print(e)
rows = [("name", "qty"), ("apple", 3), ("fig", 12)]
for r in rows:
    print("{:<8}{:>5}".format(*r))
