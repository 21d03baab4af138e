# The operator module, operator protocols and precedence.
import operator as op

print(op.add(1, 2), op.truediv(7, 2), op.floordiv(7, 2), op.mod(7, 3), op.pow(2, 5), op.neg(3), op.inv(5), op.xor(6, 3), op.lshift(1, 4), op.not_(0), op.contains("abc", "b"), op.countOf([1, 1, 2], 1), op.indexOf("abc", "c"), op.concat("a", "b"), op.is_(None, None), op.matmul.__name__, op.index(True), op.truth([]))
print(op.itemgetter(1)("abc"), op.itemgetter(0, 2)("abc"), op.itemgetter(slice(1, 3))("abcd"), op.attrgetter("real", "imag")(3), op.attrgetter("__class__.__name__")(1), op.methodcaller("replace", "a", "b")("cat"), op.length_hint(iter([1, 2])), op.call(len, "abc"))
l = [1, 2]
op.setitem(l, 0, 9)
op.delitem(l, 1)
print(l, op.iadd(l, [5]), op.getitem(l, -1), op.lt(1, 2), op.eq("a", "a"), repr(op.itemgetter(1)), repr(op.attrgetter("x")))
print(2 + 3 * 4 ** 2 // 5 % 7 - -1, not 1 == 2, 2 ** 3 ** 2, -2 ** 2, 5 - 3 - 1, 1 or 1 / 0, 0 and 1 / 0, [] or {} or "last", 1 | 2 ^ 3 & 4, ~1 + 1, 10 >> 1 + 1)


class T:
    def __init__(self, log):
        self.log = log

    def __getattr__(self, name):
        raise AttributeError(name)


for n in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    def fwd(self, o, n=n):
        return f"{n}({'T' if isinstance(o, T) else o})"

    def rev(self, o, n=n):
        return f"r{n}({o})"

    def inplace(self, o, n=n):
        return f"i{n}({o})"
    setattr(T, f"__{n}__", fwd)
    setattr(T, f"__r{n}__", rev)
    setattr(T, f"__i{n}__", inplace)
t = T(0)
print([eval(f"t {s} 1") for s in "+ - * / // % ** @ & | ^ << >>".split()])
print([eval(f"1 {s} t") for s in "+ - * / // % ** @ & | ^ << >>".split()])
for s in "+ - * / // % ** @ & | ^ << >>".split():
    ns = {"t": T(0)}
    exec(f"t {s}= 2", ns)
    print(ns["t"], end=" ")
print()


class Sub(T):
    def __radd__(self, o):
        return "subclass first"


class Cmp:
    def __lt__(self, o):
        return "lt"

    def __gt__(self, o):
        return "gt"

    def __eq__(self, o):
        return NotImplemented

    __hash__ = None


print(t + Sub(0), Cmp() < 1, 1 < Cmp(), Cmp() == 1, Cmp() != 1)
for bad in ("Cmp() <= 1", "1 + None", "[] + ()", "-'a'", "~1.5", "5 @ 5", "1 << 'a'", "'a' % {} % 1", "{} | []", "None < None", "hash(Cmp())", "1 in 5", "len + 1", "'3' * '4'", "not_defined + 1", "divmod('a', 1)", "pow(1, 2, 'a')", "abs('a')", "round('a')"):
    try:
        print(bad, eval(bad))
    except (TypeError, NameError) as e:
        print(bad, "->", e)
