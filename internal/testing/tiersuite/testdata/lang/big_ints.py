# Integers beyond machine words.
import math
import sys

a, b = 3 ** 200, 7 ** 150
print(a, b % a, a * b % (10 ** 50), (a * b) // b == a, a // 12345678901234567890)
print(math.factorial(50), math.comb(200, 100), math.isqrt(a), math.gcd(a * 6, a * 4) == 2 * a, math.lcm(*range(1, 41)))
assert divmod(-a, b) == (-a // b, -a % b) and (-a // b) * b + (-a % b) == -a
assert int(str(a)) == a and int(hex(b), 16) == b and int(oct(a), 8) == a
print(a.bit_length(), (a >> 100) & 0xFFFF, (1 << 300) - 1 == int("1" * 300, 2), ~(1 << 70), -(1 << 70) >> 69)
print(pow(a, b, 10 ** 9 + 7), pow(a, -1, 10 ** 9 + 7), 2 ** 100 > 1e30, 2 ** 53 + 1 == float(2 ** 53 + 1))
print(float(10 ** 22), 10 ** 23 == 1e23, int(1e23), round(10 ** 30 + 55, -2), a / b, 10 ** 400 // 10 ** 398)
for bad in (lambda: float(10 ** 400), lambda: 10 ** 400 / 3, lambda: 1e308 * 10 ** 400):
    try:
        bad()
    except OverflowError as e:
        print(e)
print(10 ** 400 / 10 ** 399, hash(2 ** 200) == hash(2 ** 200), -(2 ** 100) == ~(2 ** 100) + 1)
n = 2 ** 127 - 1


def is_prime(n, bases=(2, 3, 5, 7, 11, 13, 17, 19, 23)):
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for p in bases:
        x = pow(p, d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


print(is_prime(n), is_prime(n - 2))
x, y = 0, 1
for _ in range(1000):
    x, y = y, x + y
print(x)
print(sys.get_int_max_str_digits())
try:
    str(10 ** 5000)
except ValueError as e:
    print(str(e)[:60])
print(len(hex(10 ** 5000)), f"{2 ** 90:,}", f"{2 ** 90:e}", f"{-(2 ** 90):+_x}")
print((2 ** 80).to_bytes(16, "little").hex(), int.from_bytes(bytes(range(20))), sum([2 ** i for i in range(100)]))
