# Integers: arithmetic, division rules, bases, bits, conversion.
print([(a // b, a % b, divmod(a, b)) for a in (7, -7) for b in (2, -2)])
print(7 / 2, -7 // 2, 2 ** -1, 0 ** 0, pow(3, -1, 7), pow(2, 100, 13), -2 ** 2)
print(0b101, 0o17, 0xFF, 1_000, int("-0b11", 0), int("zz", 36), int(" 12 "), int("1_0"), int(-3.9), int("٣٤"))
print(bin(-10), hex(255), oct(8), format(255, "08b"), f"{-255:#06x}")
print(5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 10, -17 >> 2, True + True)
print((255).bit_length(), (255).bit_count(), (1000).to_bytes(2, "big"), int.from_bytes(b"\xff\xfe", "little", signed=True))
print((5).as_integer_ratio(), (5).conjugate(), (5).real, (5).is_integer(), abs(-5), round(25, -1), round(35, -1), round(1234, -2))
print(1 < 2 < 3, 1 < 3 > 2, 3 == 3.0, 1 == True, hash(7) == 7, isinstance(True, int))
for bad in (lambda: 1 // 0, lambda: 1 % 0, lambda: int("12a"), lambda: int("5", 1), lambda: 1 << -1, lambda: pow(2, -1, 4),
            lambda: (300).to_bytes(1, "big"), lambda: (-1).to_bytes(1, "big"), lambda: int(float("inf")), lambda: int(float("nan")), lambda: int(None)):
    try:
        print(bad())
    except (ZeroDivisionError, ValueError, TypeError, OverflowError) as e:
        print(type(e).__name__, e)


class Idx:
    def __index__(self):
        return 3

    def __int__(self):
        return 4

    def __trunc__(self):
        return 5


print([0, 1, 2, 3, 4][Idx()], int(Idx()), hex(Idx()), list(range(Idx())), operator_index := Idx().__index__())
a = 256
a += 1
a -= 7
a *= 2
a //= 3
a **= 2
a %= 1000
a <<= 2
a >>= 1
a |= 1
a &= 0xFFF
a ^= 0xF
print(a)
print(sum(range(1000)), sum(i * i for i in range(100)), len(str(2 ** 64)), 2 ** 31, 2 ** 63, -(2 ** 31) - 1)
print([i for i in range(2, 60) if all(i % d for d in range(2, int(i ** 0.5) + 1))])
