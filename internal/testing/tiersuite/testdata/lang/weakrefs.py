# weakref, finalizers, gc.
import gc
import weakref


class N:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"N({self.name})"

    def hi(self):
        return f"hi {self.name}"


a = N("a")
r = weakref.ref(a, lambda _: print("callback"))
p = weakref.proxy(a)
m = weakref.WeakMethod(a.hi)
print(r() is a, p.name, m()(), weakref.getweakrefcount(a))
wd, wk, ws = weakref.WeakValueDictionary(k=a), weakref.WeakKeyDictionary({a: 1}), weakref.WeakSet([a])
fin = weakref.finalize(a, print, "finalized", "once")
print(len(wd), len(wk), len(ws), fin.alive)
del a
gc.collect()
print(r(), len(wd), len(wk), len(ws), m(), fin.alive, fin())
try:
    p.name
except ReferenceError as e:
    print(e)
for bad in (5, "s", (1,), None):
    try:
        weakref.ref(bad)
    except TypeError as e:
        print(e)


class D:
    def __init__(self, n):
        self.n = n

    def __del__(self):
        print("del", self.n)


d = D("plain")
d = None
x, y = D("x"), D("y")
x.o, y.o = y, x
wx = weakref.ref(x)
del x, y
print("collecting", gc.collect() > 0, wx())


class Cache:
    def __init__(self):
        self.c = weakref.WeakValueDictionary()

    def get(self, k):
        o = self.c.get(k)
        if o is None:
            o = self.c[k] = N(k)
        return o


c = Cache()
k1 = c.get("k")
print(c.get("k") is k1, gc.isenabled(), isinstance(gc.get_count(), tuple))
gc.disable()
print(gc.isenabled())
gc.enable()


class Res:
    saved = []

    def __del__(self):
        Res.saved.append(self)


Res()
print(len(Res.saved), weakref.ref(k1) is weakref.ref(k1), weakref.ref(k1) == weakref.ref(k1))
Res.saved.clear()
