# The math module; transcendental results are rounded, as C libraries differ in the last bit.
import cmath
import math

r = lambda x: round(x, 10)
print([r(f(0.5)) for f in (math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.sinh, math.cosh, math.tanh, math.exp, math.expm1, math.log1p, math.erf, math.gamma)])
print(r(math.log(8, 2)), math.log2(1024), math.log10(1e5), r(math.log(math.e)), math.sqrt(2), r(math.cbrt(27.0)), math.exp2(10))
print(math.pi, math.e, math.tau, math.inf, math.nan, r(math.degrees(math.pi)), r(math.radians(180)), r(math.atan2(1, -1)))
print(math.gcd(12, 18, 27), math.lcm(4, 6), math.gcd(), math.comb(5, 2), math.perm(5, 2), math.factorial(10), math.isqrt(99))
print(math.floor(2.7), math.ceil(2.1), math.trunc(-2.7), math.fmod(-7, 3), math.remainder(7, 4), math.fabs(-2), math.modf(3.25))
print(math.isfinite(1), math.isinf(math.inf), math.isnan(math.nan), math.isclose(1, 1 + 1e-10), math.copysign(3, -0.0))
print(math.prod(range(1, 11)), math.fsum([1e100, 1, -1e100]), math.sumprod([1, 2, 3], [4, 5, 6]), math.dist([1, 1], [4, 5]))
print(math.frexp(8), math.ldexp(1, 4), math.ulp(1), math.nextafter(0, 1), math.fma(2.0, 3.0, 4.0))
print(r(math.lgamma(10)), r(math.erfc(0.3)), math.pow(2, 0.5) == 2 ** 0.5, r(math.asinh(1)), r(math.acosh(2)), r(math.atanh(0.5)))
print(cmath.sqrt(-4), r(cmath.phase(1j)), [r(v) for v in cmath.polar(3 + 4j)], cmath.isclose(cmath.exp(1j * cmath.pi), -1))


class F:
    def __floor__(self):
        return "floor"

    def __ceil__(self):
        return "ceil"

    def __trunc__(self):
        return "trunc"

    def __float__(self):
        return 0.25


print(math.floor(F()), math.ceil(F()), math.trunc(F()), math.sqrt(F()))
for bad in (lambda: math.sqrt(-1), lambda: math.log(-1), lambda: math.factorial(-1), lambda: math.comb(-1, 2), lambda: math.isqrt(-1),
            lambda: math.gamma(-1), lambda: math.fmod(1, 0), lambda: math.sin("x"), lambda: math.pow(0, -1), lambda: math.gcd(1.5), lambda: math.exp(710)):
    try:
        print(bad())
    except (ValueError, TypeError, OverflowError) as e:
        print(type(e).__name__, e)


def simpson(f, a, b, n=200):
    h = (b - a) / n
    return h / 3 * math.fsum(f(a + i * h) * (1 if i in (0, n) else 4 if i % 2 else 2) for i in range(n + 1))


print(round(simpson(math.sin, 0, math.pi), 6), round(simpson(lambda x: x ** 3, 0, 2), 6))
