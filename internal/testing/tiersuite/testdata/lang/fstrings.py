# f-strings: conversions, nesting, format specs, debugging form, quoting.
from datetime import date
from decimal import Decimal

name, n, x = "Zoë", 42, 3.14159
assert f"{name}" == "Zoë"
assert f"{name!r}" == "'Zoë'"
assert f"{name!a}" == "'Zo\\xeb'"
assert f"{n:>6}|{n:<6}|{n:^6}|" == "    42|42    |  42  |"
assert f"{n:#x} {n:#b} {n:#o} {n:08.3f}" == "0x2a 0b101010 0o52 0042.000"
assert f"{x:.{2}f}" == "3.14"
assert f"{x:{'>'}{10}.{3}}" == "      3.14"
assert f"{1234567:,} {1234567:_}" == "1,234,567 1_234_567"
assert f"{0.25:%} {0.25:.1%}" == "25.000000% 25.0%"
assert f"{{}} {{{n}}}" == "{} {42}"
assert f"{n=} {n = } {n=!s} {x=:.2f}" == "n=42 n = 42 n=42 x=3.14"
assert f"{'a' if n > 1 else 'b'}" == "a"
assert f"{(lambda v: v * 2)(n)}" == "84"
assert f"{date(2024, 2, 29):%d.%m.%Y}" == "29.02.2024"
assert f"{Decimal('1.10'):.3f}" == "1.100"
assert rf"\n{n}" == "\\n42"
# PEP 701: the same quote inside, backslashes, comments, many lines.
assert f"{"inner"}" == "inner"
assert f"{'\n'.join(['a', 'b'])}" == "a\nb"
assert f"{
    n  # the answer
}" == "42"
assert f"{f"{f"{1 + 1}"}"}" == "2"


class Money:
    def __init__(self, amount):
        self.amount = amount

    def __format__(self, spec):
        return f"<{spec or 'plain'}:{self.amount}>"

    def __str__(self):
        return "str"

    def __repr__(self):
        return "repr"


m = Money(5)
print(f"{m} {m:eur} {m!s} {m!r} {m!s:>5}")
print(f"{m=}")
print(f"""{n}
{name:*^9}
""")
for bad in ("f'{'", "f'{}'", "f'{a!x}'", "f'}'"):
    try:
        compile(bad, "f", "eval")
    except SyntaxError as e:
        print(bad, "->", e.msg)
try:
    f"{n:q}"
except ValueError as e:
    print(e)
