# exec, eval, compile, dynamic attributes, builtins.
ns = {}
exec("""
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
class K:
    v = fact(5)
total = sum(i for i in range(K.v))
""", ns)
print(ns["total"], ns["K"].v, sorted(k for k in ns if k != "__builtins__"), eval("fact(6)", ns))
print(eval("x + y", {"x": 1}, {"y": 2}), eval("[a for a in range(3)]"), eval(" 1 "), eval(compile("2 * 3", "c", "eval")))
for src in ("1 +", "x = 1", "nope", "1/0", "import os", "\n\n 1", "f'{'", "a b", "(", "'unterminated"):
    try:
        print(eval(src, {}))
    except Exception as e:
        print(repr(src), type(e).__name__, e)
try:
    eval("__import__('os')", {"__builtins__": {}})
except NameError as e:
    print(e)
try:
    exec("len = 5\nlen([])", {})
except TypeError as e:
    print(e)


class O:
    pass


o = O()
setattr(o, "dyn amic", 1)
print(getattr(o, "dyn amic"), vars(o), hasattr(o, "x"), delattr(o, "dyn amic"), callable(O), callable(o), isinstance(o, (int, O)), issubclass(O, object), type(o).__name__, id(o) == id(o))
print(abs(-1), all([1, 0]), any([0, 1]), ascii("é"), bin(5), bool(""), chr(97), divmod(7, 2), hash(1), hex(255), len("abc"), list("ab"), max(1, 2), min([3, 1]), oct(8), ord("a"), pow(2, 3), range(3), repr("x"), reversed, round(2.567, 2), sorted("ba"), str(1), sum([1, 2]), tuple("ab"), zip)
print(type(int), type(type), type(None), type(...), type(NotImplemented), object.__doc__ is None or "doc", NotImplemented.__class__, Ellipsis is ...)
code = compile("a = 1\nb = a + 1\nprint('from code', b)", "<made>", "exec")
exec(code)
print(b, code.co_filename, type(code).__name__, [l for _, _, l in code.co_lines() if l][-1])
closure = (lambda k: lambda: k)(7)
print(closure(), exec("pass"), dir(O())[0], sorted(vars(O))[:2], __import__("math").sqrt(16), getattr(__import__("os.path", fromlist=["join"]), "join")("a", "b"))
