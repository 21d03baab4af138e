# global, nonlocal, class scope, locals(), del.
n = 1


def set_global():
    global n, made
    n += 1
    made = "by function"


set_global()
set_global()
print(n, made, globals()["n"])


def outer():
    v = 1

    def mid():
        nonlocal v
        v = 2

        def inner():
            nonlocal v
            v += 10
            return v
        return inner()
    return mid(), v


print(outer())


class C:
    n = "class"
    seen = n

    def m(self):
        return n

    class D:
        seen = n

        def n2(self):
            return __class__.__name__


print(C.seen, C().m(), C.D.seen, C.D().n2())
for bad in ("def f():\n nonlocal q", "def f():\n x = 1\n global x", "nonlocal z", "def f(a):\n global a", "def f():\n print(y)\n nonlocal y", "def f():\n global g\n nonlocal g"):
    try:
        compile(bad, "s", "exec")
    except SyntaxError as e:
        print(e.msg)


def shadows():
    len = lambda x: "mine"
    return len([])


print(shadows(), len([1]))
x = "global x"


def reads(flag):
    if flag:
        x = "local"
    try:
        return x
    except UnboundLocalError as e:
        return f"{e}"


print(reads(True), "|", reads(False))


def use_locals(a, b=2):
    c = a + b
    snap = locals()
    c = 100
    return sorted(snap.items()), locals() is locals()


print(use_locals(1))
del x
try:
    x
except NameError as e:
    print(e)
try:
    del undefined_name
except NameError as e:
    print(e)
ns = {"q": 5}
exec("r = q * 2\ndef g(): return r + q", ns)
print(ns["r"], ns["g"](), eval("q + r", ns), eval("a + b", {"a": 1}, {"b": 2}))
for i in range(3):
    leaked = i
print(i, leaked)
import builtins

builtins.added = "from builtins"
print(added)
del builtins.added


def kw_scope(*, k=n):
    return k


n = 50
print(kw_scope(), (lambda: n)(), [n for _ in "x"], "n" in dir(), callable(vars))
if True:
    block = 1
print(block, __name__)
