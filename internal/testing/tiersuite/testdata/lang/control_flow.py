# Loops, else clauses, try in loops, conditionals, nested functions, assertions.
out = []
for i in range(10):
    if i % 2:
        continue
    if i > 6:
        break
    out.append(i)
else:
    out.append("never")
print(out)
for n in range(2, 20):
    for d in range(2, n):
        if n % d == 0:
            break
    else:
        print(n, end=" ")
print()


def loops():
    for i in range(3):
        try:
            if i == 0:
                continue
            if i == 2:
                return "returned"
        finally:
            out.append(f"fin{i}")


print(loops(), out)


def fin_return():
    try:
        return "try"
    finally:
        out.append("after return")


def fin_override():
    try:
        raise ValueError
    finally:
        return "swallowed"


print(fin_return(), fin_override(), out[-1])
i = 0
while True:
    i += 1
    if i == 3:
        continue
    if i > 5:
        break
print(i, "a" if i else "b", [x if x > 1 else -x for x in range(4)])
if (n := 10) > 5 and not n == 7 or False:
    print("chained", 1 < n <= 10 != 3)
elif n:
    print("no")
pass
...
assert True, "never evaluated"
x = 5; y = 6; print(x + y)
if x: print("one line"); y += 1
print(y)
total = \
    1 + \
    2
print(total, (1,
              2), [
    3,
], {"a": 1,
    }["a"])


def fizz(n):
    return ["FizzBuzz" if i % 15 == 0 else "Fizz" if i % 3 == 0 else "Buzz" if i % 5 == 0 else i for i in range(1, n + 1)]


print(fizz(15))
grid = [[(r + c) % 3 for c in range(4)] for r in range(3)]
found = None
for r, row in enumerate(grid):
    for c, v in enumerate(row):
        if v == 2 and r == 1:
            found = (r, c)
            break
    if found:
        break
print(found, grid)
try:
    try:
        1 / 0
    finally:
        print("inner finally")
except ZeroDivisionError:
    print("outer except")
else:
    print("no")
finally:
    print("outer finally")


def collatz(n):
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


print([collatz(n) for n in range(1, 20)], max(range(1, 2000), key=collatz))
del x, y
print("x" in globals(), "total" in dir())
