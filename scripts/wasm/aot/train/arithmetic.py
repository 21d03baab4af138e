# Integers, floats and big numbers in loops, as models compute.
import cmath, decimal, fractions, itertools, math, random, statistics


def primes(limit):
    sieve = bytearray([1]) * (limit + 1)
    sieve[:2] = b"\0\0"
    for i in range(2, int(limit**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(range(i * i, limit + 1, i)))
    return [i for i, flag in enumerate(sieve) if flag]


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def mandelbrot(size):
    inside = 0
    for row in range(size):
        for column in range(size):
            c = complex(2.5 * column / size - 2, 2.0 * row / size - 1)
            z = 0j
            for _ in range(40):
                z = z * z + c
                if abs(z) > 2:
                    break
            else:
                inside += 1
    return inside


def multiply(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def queens(n, row=0, columns=0, left=0, right=0):
    if row == n:
        return 1
    found = 0
    for column in range(n):
        bit = 1 << column
        if not (columns & bit or left & (1 << row + column) or right & (1 << row - column + n)):
            found += queens(n, row + 1, columns | bit, left | 1 << row + column, right | 1 << row - column + n)
    return found


def integrate(f, a, b, n):
    step = (b - a) / n
    total = 0.5 * (f(a) + f(b))
    for i in range(1, n):
        total += f(a + i * step)
    return total * step


def walk(seed, n):
    rng = random.Random(seed)
    x = y = 0.0
    for _ in range(n):
        angle = rng.uniform(0, 2 * math.pi)
        x += math.cos(angle)
        y += math.sin(angle)
    return math.hypot(x, y)


assert len(primes(60000)) == 6057
assert max(map(collatz, range(1, 3000))) == 216
mandelbrot(48)
square = [[(i * j) % 7 - 3.5 for j in range(32)] for i in range(32)]
multiply(multiply(square, square), square)
assert queens(6) == 4
integrate(lambda x: math.exp(-x * x) * math.sin(3 * x), 0, 4, 20000)
walk(5, 8000)
power = 1
for i in range(1, 400):
    power = power * (3**i + i) % (10**180 + 7)
assert math.factorial(500) % 499 == 0 and len(str(7**3000)) == 2536
pow(3, 10**40, 10**45 + 9)
with decimal.localcontext(prec=40):
    total = sum(decimal.Decimal(1) / decimal.Decimal(k) ** 2 for k in range(1, 2000))
    decimal.Decimal(2).sqrt().ln()
sum((fractions.Fraction(1, k) for k in range(1, 120)), fractions.Fraction())
values = [random.Random(3).gauss(10, 2) for _ in range(2000)]
statistics.stdev(values), statistics.median(values), statistics.quantiles(values, n=20)
[round(v, 2) for v in values], [cmath.sqrt(v) for v in values[:200]]
sum(1 for a, b, c in itertools.product(range(1, 40), repeat=3) if a * a + b * b == c * c)
x = 12345
for i in range(60000):
    x = (x * 1103515245 + 12345) & 0x7FFFFFFF
    x ^= x >> 7
days = 0
for year in range(1900, 2100):
    for month in range(12):
        days += 31 - (month % 7 % 2) if month != 1 else 29 if year % 4 == 0 else 28
