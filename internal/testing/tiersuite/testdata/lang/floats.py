# Floats: repr, rounding, special values, formatting, hex.
import math
import sys

inf, nan = float("inf"), float("nan")
print(0.1 + 0.2, 1e16, 1e15, 1e-5, 0.0001, 123456789.123456789, 1.0, -0.0, 5e-324, 1.7976931348623157e308, 1e22, 1e23)
print(inf, -inf, nan, inf - inf, inf * 0, nan == nan, nan != nan, [nan] == [nan], nan in [nan], inf > 10 ** 400)
print(round(2.5), round(3.5), round(-2.5), round(2.675, 2), round(1234.5678, -2), round(0.5), round(1e20), round(-0.4))
print(f"{3.14159:.2f} {1e10:g} {1e-10:G} {0.000123:.3e} {1234567.891:,.2f} {5:.1f} {-3.7:+.0f} {2.5:010.3f} {0.1:.20f}")
print(format(1e100, "f")[:20], repr(0.1), str(1e16), "%.3g" % 12345.678, "%g" % 1e6, "%g" % 1e5)
print((0.1).hex(), float.fromhex("0x1.8p+1"), (0.75).as_integer_ratio(), (2.0).is_integer(), float("1_0.5"), float(" -1e3 "), float("١.٥"))
print(7.5 // 2, -7.5 // 2, 7.5 % 2, -7.5 % 2, divmod(-7.5, 2), 2 ** 0.5, (-8) ** (1 / 3) == complex((-8) ** (1 / 3)))
print(math.floor(-1.5), math.ceil(-1.5), math.trunc(-1.5), math.copysign(1, -0.0), math.isclose(0.1 + 0.2, 0.3), math.fsum([0.1] * 10))
print(sum([0.1] * 10), math.prod([1.5, 2]), math.hypot(3, 4), math.dist((0, 0), (3, 4)), math.ulp(1.0), math.nextafter(1, 2))
print(sys.float_info.max, sys.float_info.dig, sys.float_info.epsilon, math.frexp(10.0), math.ldexp(0.5, 3), math.modf(-2.25))
for bad in (lambda: 1.0 / 0, lambda: 1.0 % 0, lambda: math.sqrt(-1), lambda: math.log(0), lambda: float("1,5"), lambda: math.exp(1000),
            lambda: float("") , lambda: math.factorial(1.5), lambda: round(inf), lambda: 0.0 ** -1, lambda: math.acos(2)):
    try:
        print(bad())
    except (ZeroDivisionError, ValueError, OverflowError, TypeError) as e:
        print(type(e).__name__, e)
try:
    10.0 ** 400
except OverflowError as e:
    print(type(e).__name__)  # its text is the C library's
print(1 + 2j, (1 + 2j) * (3 - 1j), abs(3 + 4j), (1j) ** 2, complex("1+2j"), (1 + 2j).conjugate(), 1j == complex(0, 1), (2 - 0j).imag)
print(0.1 + 0.2 == 0.3, 1e16 + 1 == 1e16, 9007199254740993 == 9007199254740993.0, min(0.0, -0.0), max(nan, 1) is nan, sorted([2.5, -1, 3]))
print([f"{x:.0f}" for x in (0.5, 1.5, 2.5)], [f"{x:6.1%}" for x in (0.5, 1)], f"{1e5:n}", f"{-0.0:z.1f}", f"{1.5:<8}|{1.5:^8}|{1.5:=+8}|")
print(*(repr(x / 7) for x in range(1, 7)))
print(*(repr(1.1 ** x) for x in range(0, 40, 8)), 1e300 * 1e10, -1e300 * 1e10)
