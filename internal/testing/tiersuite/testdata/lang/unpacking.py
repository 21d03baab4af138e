# Unpacking in assignments, calls, displays, loops; argument kinds.
a, (b, *c), d = 1, [2, 3, 4], 5
print(a, b, c, d)
*a, b = "xyz"
[q, w] = (1, 2)
x = y = z = []
x.append(1)
a, b = b, a
print(a, b, q, w, y is z)
for i, (j, *k) in enumerate([(1, 2, 3), "ab"]):
    print(i, j, k)
print([*range(3), *"ab"], {*[1, 2], 3}, (*(), 1), {**{"a": 1}, **{"a": 2, "b": 3}}, *[1, 2], sep="|")


def f(a, /, b, c=3, *args, d, e=5, **kw):
    return a, b, c, args, d, e, kw


print(f(1, 2, d=4), f(1, b=2, d=4), f(1, 2, 3, 4, 5, d=6, z=7), f(*[1, 2], **{"d": 4, "a": "kw"}), f(*"ab", *"cd", d=0, **{"e": 1}, **{"g": 2}))
for call in ("f()", "f(1)", "f(1, 2)", "f(1, 2, d=1, d=2)", "f(1, 2, **{'d': 1}, **{'d': 2})", "f(a=1, b=2, d=3)", "f(1, b=2, d=3, b=4)", "(lambda x: x)(1, 2)", "(lambda *, k: k)(1)", "f(**{1: 2})", "f(*5)", "f(**5)", "(lambda x, y=1: x)(z=2)"):
    try:
        print(call, eval(call))
    except (TypeError, SyntaxError) as e:
        print(call, "->", e)
for bad in ("a, b = 1", "a, b = [1]", "a, b = 1, 2, 3", "a, *b, c = [1]", "(a, b), c = 1, 2", "a, b = {}"):
    try:
        exec(bad)
    except (TypeError, ValueError) as e:
        print(bad, "->", e)
for bad in ("*a, *b = 1", "*a = 1", "f(**k, *a)", "def g(a, a): pass", "def g(a=1, b): pass", "def g(*): pass", "x = *y", "f(x for x in y, 1)", "del *a", "f(1=2)", "(a, 1) = 1, 2"):
    try:
        compile(bad, "b", "exec")
        print(bad, "compiles")
    except SyntaxError as e:
        print(bad, "->", e.msg)


def defaults(x, acc=[]):
    acc.append(x)
    return acc


print(defaults(1), defaults(2), defaults.__defaults__, defaults(3, []))


def rets():
    return 1, *[2, 3]


def ann(a: int, b: "str" = "x", *c: float, d: list[int] | None = None) -> dict[str, int]: ...


print(rets(), ann.__annotations__, f.__kwdefaults__, f.__code__.co_posonlyargcount, f.__code__.co_kwonlyargcount)
d = {"k": [1, {"n": (2, 3)}]}
d["k"][0], d["new"] = 9, 8
(p, (r, s)) = d["k"][0], d["k"][1]["n"]
print(d, p, r, s)
i = 0
i, lst = 1, [0, 0]
i, lst[i] = 0, 5
print(i, lst)
