# sort and sorted: keys, stability, reverse, comparators, errors.
from functools import cmp_to_key
from operator import attrgetter, itemgetter

data = [("b", 2), ("a", 2), ("c", 1), ("d", 1)]
print(sorted(data), sorted(data, key=itemgetter(1)), sorted(data, key=itemgetter(1), reverse=True), sorted(data, key=lambda t: (-t[1], t[0])))
for i in range(200):
    pass
recs = [(i * 7919 % 101, i) for i in range(500)]
by = sorted(recs, key=itemgetter(0))
assert all(x[0] < y[0] or (x[0] == y[0] and x[1] < y[1]) for x, y in zip(by, by[1:])), "not stable"
rev = sorted(recs, key=itemgetter(0), reverse=True)
assert all(x[0] > y[0] or (x[0] == y[0] and x[1] < y[1]) for x, y in zip(rev, rev[1:])), "reverse is not stable"
xs = [3, 1, 2]
print(xs.sort(), xs, sorted("banana"), sorted({"b": 1, "a": 2}), sorted([True, 0, 2, -1]), sorted(["B", "a", "C"], key=str.lower), sorted([2.5, 1, 10 ** 20, -3]))
print(sorted(["10", "9", "2"], key=int), sorted(["x2", "x10", "x1"], key=lambda s: int(s[1:])), sorted([[2], [1, 5], [1]]), sorted([None, 3, 1], key=lambda v: (v is None, v or 0)))
print(sorted([5, 3, 9, 1], key=cmp_to_key(lambda a, b: b - a)), sorted(range(10), key=lambda v: v % 3), list(reversed(sorted("cab"))))


class V:
    calls = 0

    def __init__(self, v):
        self.v = v

    def __lt__(self, o):
        V.calls += 1
        return self.v < o.v

    def __repr__(self):
        return f"V{self.v}"


print(sorted([V(3), V(1), V(2)]), V.calls > 0, min(V(2), V(1)), sorted([V(2), V(1)], key=attrgetter("v")))
for bad in ([1, "a"], [None, 1], [{}, {}], [1j, 2j]):
    try:
        sorted(bad)
    except TypeError as e:
        print(e)
seen = []
sorted([3, 1, 2], key=lambda v: seen.append(v) or v)
print(seen)
ys = [1, 2, 3]
try:
    ys.sort(key=lambda v: ys.append(v) or v)
except ValueError as e:
    print(e, ys)
try:
    ys.sort(key=lambda v: 1 / (v - 2))
except ZeroDivisionError as e:
    print(e, ys)
big = [(i * 2654435761) % 1000003 for i in range(5000)]
s = sorted(big)
assert all(a <= b for a, b in zip(s, s[1:])) and sorted(s) == s and sorted(big, reverse=True) == s[::-1]
print(s[:5], s[-3:], sum(i * v for i, v in enumerate(s)) % 1000007)
words = "the quick brown fox jumps over the lazy dog".split()
print(sorted(words, key=len), sorted(words, key=lambda w: (len(w), w)), sorted(set(words)), max(words, key=len), min(words, key=lambda w: w[::-1]))
nan = float("nan")
print(len(sorted([3, nan, 1])), sorted([(1, nan), (0, 5)])[0], sorted([b"b", b"a"]), sorted([(1,), (1, 0), ()]))
