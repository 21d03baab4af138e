# itertools, every function.
import itertools as it
import operator as op

print(list(it.accumulate([1, 2, 3, 4])), list(it.accumulate([3, 1, 4], max)), list(it.accumulate([1, 2], op.mul, initial=10)))
print(list(it.batched("abcdefg", 3)), list(it.chain("ab", [1])), list(it.chain.from_iterable(["ab", "c"])), list(it.combinations("abcd", 2))[:4], list(it.combinations_with_replacement("ab", 2)))
print(list(it.compress("abcd", [1, 0, 1, 0])), list(it.islice(it.count(5, 2), 3)), list(it.islice(it.cycle("ab"), 5)), list(it.dropwhile(lambda x: x < 3, [1, 4, 2])), list(it.filterfalse(None, [0, 1, ""])))
print([(k, list(g)) for k, g in it.groupby("aabbbca")], [(k, len(list(g))) for k, g in it.groupby(sorted(range(10), key=lambda v: v % 3), key=lambda v: v % 3)])
print(list(it.pairwise("abcd")), list(it.permutations([1, 2, 3], 2)), list(it.product("ab", [0, 1])), list(it.product([0, 1], repeat=3))[-2:], list(it.repeat("x", 3)), list(it.starmap(pow, [(2, 3), (3, 2)])))
print(list(it.takewhile(str.isalpha, "ab1c")), list(it.zip_longest("ab", [1], fillvalue="-")), [list(x) for x in it.tee([1, 2], 2)], list(it.islice("abcdef", 1, None, 2)))
a, b = it.tee(iter(range(5)))
next(a)
print(list(zip(b, a)))
print(len(list(it.permutations(range(6)))), sum(1 for _ in it.combinations(range(12), 5)), list(it.product()), list(it.permutations([])))
g = it.groupby([1, 1, 2])
k1, g1 = next(g)
k2, g2 = next(g)
print(k1, list(g1), k2, list(g2))
for bad in (lambda: it.islice([1], -1), lambda: it.combinations([1], -1), lambda: list(it.batched([1], 0)), lambda: it.repeat(), lambda: list(it.chain(5)), lambda: it.product([1], repeat=-1), lambda: list(it.batched("abc", 2, strict=True)), lambda: it.count("a")):
    try:
        bad()
    except (ValueError, TypeError) as e:
        print(type(e).__name__, e)
print(it.count(3), it.repeat(1, 2), list(it.islice(it.count(0.5, 0.25), 3)), next(it.cycle([7])))
try:
    next(it.cycle([]))
except StopIteration:
    print("empty cycle")


def sliding(xs, n):
    its = it.tee(xs, n)
    for i, t in enumerate(its):
        next(it.islice(t, i, i), None)
    return zip(*its)


print(list(sliding(range(6), 3)), list(it.chain(*it.repeat("ab", 2))))
primes = it.chain([2], filter(lambda n: all(n % d for d in range(3, int(n ** 0.5) + 1, 2)), it.count(3, 2)))
print(list(it.islice(primes, 12)), dict(it.zip_longest("ab", "1")))
