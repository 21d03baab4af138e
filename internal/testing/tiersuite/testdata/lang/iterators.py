# The iterator protocol, zip/map/filter/enumerate/reversed, sentinels.
class Count:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


class OldStyle:
    def __getitem__(self, i):
        if i > 3:
            raise IndexError
        return i * i

    def __len__(self):
        return 4


print(list(Count(3)), list(OldStyle()), 9 in OldStyle(), list(reversed(OldStyle())))
print(list(zip("ab", [1, 2, 3])), list(zip()), dict(zip("xy", range(2))))
try:
    list(zip("ab", "c", strict=True))
except ValueError as e:
    print(e)
print(list(map(pow, [2, 3], [3, 2])), list(filter(None, [0, 1, "", "a"])), list(enumerate("ab", 5)))
print(list(reversed([1, 2, 3])), list(reversed({"a": 1, "b": 2})), next(iter([]), "default"))
it = iter([1, 2, 3, 4].pop, 1)
print(list(it))
a = iter("abcdef")
print(list(zip(a, a)))
print(any(x > 2 for x in Count(5)), all([]), sum([[1], [2]], []), min("b", "a"), max([1, 5], [2], key=len))
s = iter([1, 2, 3])
print(next(s), s.__length_hint__(), list(s), list(s))


class Hint:
    def __iter__(self):
        return iter("hint")

    def __length_hint__(self):
        return 1000


print(list(Hint()))
try:
    for k in (d := {"a": 1}):
        d[k + k] = 1
except RuntimeError as e:
    print(e)
lst = [1, 2, 3]
for v in lst:
    if v < 3:
        lst.append(v + 10)
print(lst)
for i in range(3):
    if i == 5:
        break
else:
    print("for-else", i)
while i:
    i -= 1
else:
    print("while-else", i)
for bad in (lambda: iter(5), lambda: next([]), lambda: iter(5, 5)):
    try:
        bad()
    except TypeError as e:
        print(e)
r = range(10, 0, -3)
print(list(r), r[1], r[-1], len(r), 4 in r, 5 in r, r.index(4), r[::2], range(0) == range(5, 5))
first, *rest = Count(4)
print(first, rest, sorted(Count(3)), ",".join(map(str, Count(3))))


async def not_iterable():
    pass


try:
    for _ in not_iterable:
        pass
except TypeError as e:
    print(e)
