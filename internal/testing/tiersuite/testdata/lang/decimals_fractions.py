# Exact arithmetic: decimal and fractions.
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, ROUND_UP, Context, Decimal, DivisionByZero, Inexact, InvalidOperation, getcontext, localcontext
from fractions import Fraction

D = Decimal
print(D("0.1") + D("0.2"), D("1.10") * 3, D(1) / D(7), D(2).sqrt(), D("1e3"), D("-0"), D("NaN"), D("Infinity"), D(0.1))
print([str(D("2.675").quantize(D("0.01"), rounding=m)) for m in (ROUND_HALF_UP, ROUND_HALF_EVEN, ROUND_DOWN, ROUND_UP, ROUND_CEILING)])
with localcontext() as ctx:
    ctx.prec = 50
    print(D(1) / D(3), D(2) ** D("0.5"), D(10).ln(), D(1).exp())
print(getcontext().prec, D(1) / D(3))
print(D("123.4500").normalize(), D("123.4500").as_tuple(), D("1E+2").to_integral_value(), D("-3.7") // 1, D("-3.7") % 2, divmod(D("7.5"), 2))
print(f"{D('1234567.891'):,.2f} {D('0.000001')} {D('1e-7')} {D('12'):>8} {D('0.5'):.0%}", D("1.0") == 1, D("1.5") > 1.25, hash(D(3)) == hash(3))
for bad in (lambda: D(1) / 0, lambda: D("abc"), lambda: D(0) / 0, lambda: D("sNaN") + 1, lambda: D(1) + 1.5, lambda: D(1).quantize(D("1e-40"))):
    try:
        print(bad())
    except (DivisionByZero, InvalidOperation, TypeError) as e:
        print(type(e).__name__, e)
c = Context(prec=3, traps=[Inexact])
try:
    c.divide(D(1), D(3))
except Inexact as e:
    print("Inexact", e)
print(sum([D("0.1")] * 10), max(D(1), D("1.01")), sorted([D("2"), D("-1"), D("1.5")]), D("3.14").as_integer_ratio(), round(D("2.5")), round(D("2.345"), 2), int(D("9.99")))
print(D("9" * 40) + 1, D("1.23456789") .compare(D("1.2")), D(-5).copy_abs(), D("1e400") * D("1e400"))
F = Fraction
print(F(1, 3) + F(1, 6), F("0.125"), F("3/9"), F(0.5), F(7, -2), F(1, 3) ** 2, F(1, 3) ** -2, F(22, 7).limit_denominator(5), F(3.141592653589793).limit_denominator(1000))
print(F(7, 2) // 1, F(-7, 2) % 2, round(F(5, 2)), round(F(7, 3), 2), float(F(1, 3)), F(1, 2) == 0.5, F(1, 2) < F(2, 3), F(5) == 5, int(F(-7, 2)))
print(repr(F(1, 2)), str(F(4, 2)), F(1, 3) + 1, F(1, 3) + 0.5, f"{F(1, 3):.4f}", F(D("0.75")), F(1, 3).numerator, sum(F(1, n) for n in range(1, 11)))
for bad in (lambda: F(1, 0), lambda: F("x"), lambda: F(1.5, 2)):
    try:
        bad()
    except (ZeroDivisionError, ValueError, TypeError) as e:
        print(type(e).__name__, e)
