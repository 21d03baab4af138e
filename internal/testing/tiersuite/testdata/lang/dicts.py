# dict: order, views, merging, subclass hooks, equality.
d = {"b": 1, "a": 2}
d["c"] = 3
d["b"] = 9
print(d, list(d), list(d.items()), list(reversed(d.values())), d.popitem(), d.pop("a"), d.pop("zz", None), d)
d = dict(x=1, y=2) | {"y": 3, "z": 4}
d |= [("w", 5)]
print(d, {**d, "x": 0}, d.get("q"), d.get("q", 7), d.setdefault("x", 100), d.setdefault("n", []), "x" in d, len(d))
print(d.keys() & {"x", "q"}, sorted(d.keys() | {"q"}), d.keys() - {"w", "x", "y", "z"}, ("x", 1) in d.items(), d.keys() == set(d))
print(dict.fromkeys("ab", 0), dict([("k", "v")]), dict(zip("ab", (1, 2))), {1: "a", 1.0: "b", True: "c"}, {(): 1, None: 2, (1, 2): 3})
a = {"x": 1, "y": 2}
b = {"y": 2, "x": 1}
print(a == b, list(a) == list(b), a != {"x": 1}, {} == {}, bool({}), {"k": {"n": [1]}}["k"]["n"][0])
a.update(z=3)
a.update({"x": 10}, q=4)
del a["y"]
print(a, a.copy() is a, sorted(a.items(), key=lambda kv: -kv[1]), max(a, key=a.get), sum(a.values()), next(iter(a)))
view = a.keys()
a["late"] = 1
print(list(view), type(view).__name__, view.mapping["late"], {k: v for k, v in a.items() if v > 3})
for bad in (lambda: {}["missing"], lambda: {}.popitem(), lambda: {[]: 1}, lambda: dict([(1, 2, 3)]), lambda: {}.pop("k"), lambda: {} < {}, lambda: {} + {}, lambda: dict(5), lambda: {"a": 1}.a):
    try:
        print(bad())
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        print(type(e).__name__, e)


class Missing(dict):
    def __missing__(self, k):
        self[k] = v = f"<{k}>"
        return v


m = Missing(a=1)
print(m["a"], m["b"], m, m.get("c"), "c" in m)


class Key:
    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return 1

    def __eq__(self, o):
        return self.v == o.v

    def __repr__(self):
        return f"K{self.v}"


many = {Key(i): i for i in range(20)}
print(len(many), many[Key(13)], Key(99) in many, list(many)[:3])
big = {i: str(i) for i in range(1000)}
for i in range(0, 1000, 2):
    del big[i]
big[0] = "again"
print(len(big), list(big)[:3], list(big)[-1])
r = {}
r["self"] = r
print(r, len(repr(r)))
try:
    for k in big:
        big.pop(k)
except RuntimeError as e:
    print(e)
order = {}
for w in "the cat the dog the end".split():
    order[w] = order.get(w, 0) + 1
print(order, sorted(order, key=lambda k: (-order[k], k)))
nested = {}
for path in ("a/b/c", "a/d", "e"):
    node = nested
    for part in path.split("/"):
        node = node.setdefault(part, {})
print(nested, str(nested) == repr(nested))
