# List, dict, set and generator comprehensions, and their scopes.
print([x * y for x in range(4) for y in range(x) if (x + y) % 2])
print({c: i for i, c in enumerate("abcab")})
print(sorted({w.lower() for w in "The the THE end End".split()}))
print(sum(x for x in range(101)), max((len(w), w) for w in ["aa", "b", "ccc"]))
print([[r * c for c in range(1, 4)] for r in range(1, 4)])
print([a if a % 2 else -a for a in range(6)])
print([*[i for i in range(3)], *(j for j in "xy")])
print({**{k: 1 for k in "ab"}, "b": 2})
x = "outer"
[x for x in range(3)]
assert x == "outer"
fs = [lambda: i for i in range(3)]
assert [f() for f in fs] == [2, 2, 2]
fs = [lambda i=i: i for i in range(3)]
assert [f() for f in fs] == [0, 1, 2]


class C:
    ks = ["a", "b"]
    pairs = {k: len(k) for k in ks}
    try:
        nested = [k for _ in range(1) for k in ks]
    except NameError as e:
        nested = str(e)


print(C.pairs, C.nested)
g = (print("side", i) or i for i in range(2))
print("lazy", next(g), list(g))


def gen_scope():
    y = 10
    return [y + z for z in range(3)], (lambda: [y * z for z in range(3)])()


print(gen_scope())
print([(i, j) for i, j in zip("ab", range(9))], [n for n in range(20) if n % 2 if n % 3])
print(list(x for (x, *_) in [(1, 2), (3, 4, 5)]))
try:
    [1 / v for v in (1, 0)]
except ZeroDivisionError as e:
    print(e)
assert [locals().get("q") for q in range(2)] == [0, 1]
print("done")
