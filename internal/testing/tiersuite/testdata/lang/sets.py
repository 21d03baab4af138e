# set and frozenset.
a, b = {1, 2, 3}, {3, 4}
print(a | b, a & b, a - b, a ^ b, a <= {1, 2, 3, 4}, a < a, a >= {1}, a.isdisjoint({9}), 2 in a, len(a | b))
a.add(10)
a.discard(99)
a.remove(1)
a |= {5}
a &= {2, 3, 5, 10}
a -= {10}
a ^= {2, 6}
print(sorted(a), sorted(a.union([7], (8,))), sorted(a.intersection([3, 5], [5])), sorted(a.difference([3])), sorted(a.symmetric_difference([3, 4])))
a.update([1], {2})
a.difference_update([1])
a.intersection_update({2, 3, 5})
print(sorted(a), a.copy() == a, set() == frozenset(), {1} == frozenset([1]), hash(frozenset([1, 2])) == hash(frozenset([2, 1])))
fs = frozenset("abc")
print(sorted(fs), {fs: "key"}[frozenset("cba")], type(fs | {"d"}).__name__, type({"d"} | fs).__name__, repr(set()), repr(frozenset()), repr(frozenset([1])))
print(sorted({len(w) for w in "a bb cc ddd".split()}), set("hello") == set("olleh"), {1, 1.0, True}, sorted(map(str, {None, 1, "x"})))
for bad in (lambda: set().pop(), lambda: {1}.remove(2), lambda: {[]}, lambda: {1} + {2}, lambda: frozenset().add(1), lambda: {1} | [2], lambda: hash(set()), lambda: set(5), lambda: {1}[0]):
    try:
        print(bad())
    except (KeyError, TypeError, AttributeError) as e:
        print(type(e).__name__, e)
s = set(range(1000))
while s:
    s.pop()
    if len(s) == 500:
        break
print(len(s))
try:
    for v in (t := {1, 2, 3}):
        t.add(v + 100)
except RuntimeError as e:
    print(e)
print(sorted(x for x in {1, 2} if x in {2, 3}), not {1} & {2}, any({0}), max({3, 9}), sum({1, 2}), [*{7}], *{8})


class E:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return self.v % 3 == o.v % 3

    def __hash__(self):
        return self.v % 3


print(len({E(i) for i in range(10)}), E(7) in {E(1)})


class SubSet(set):
    def __contains__(self, o):
        return True


print(5 in SubSet(), type(SubSet([1]) | {2}).__name__)
powerset = lambda xs: [[x for i, x in enumerate(xs) if m >> i & 1] for m in range(2 ** len(xs))]
print(powerset([1, 2, 3]))
