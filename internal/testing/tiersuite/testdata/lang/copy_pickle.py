# copy and pickle, also of classes and functions defined in the main module.
import copy
import io
import pickle
from dataclasses import dataclass
from enum import Enum

a = [1, [2, 3], {"k": (4, [5])}]
s, d = copy.copy(a), copy.deepcopy(a)
a[1].append(9)
a[2]["k"][1].append(6)
print(s, d, s[1] is a[1], d[1] is a[1])
loop = [1]
loop.append(loop)
dl = copy.deepcopy(loop)
assert dl[1] is dl and dl is not loop
shared = [0]
pair = copy.deepcopy([shared, shared])
assert pair[0] is pair[1]


class C:
    def __init__(self, v):
        self.v = v

    def __copy__(self):
        return C(("copied", self.v))

    def __deepcopy__(self, memo):
        return C(("deep", self.v))

    def __reduce__(self):
        return C, (("reduced", self.v),)


print(copy.copy(C(1)).v, copy.deepcopy(C(1)).v, pickle.loads(pickle.dumps(C(1))).v)


@dataclass
class Point:
    x: int
    y: list


class Color(Enum):
    RED = 1


class State:
    def __init__(self):
        self.a, self.lock = 1, lambda: 0

    def __getstate__(self):
        return {"a": self.a}

    def __setstate__(self, st):
        self.__dict__.update(st, lock="rebuilt")


class Slots:
    __slots__ = ("p", "q")

    def __init__(self):
        self.p, self.q = 1, [2]


class New:
    def __new__(cls, a, *, b):
        o = super().__new__(cls)
        o.ab = (a, b)
        return o

    def __getnewargs_ex__(self):
        return (self.ab[0],), {"b": self.ab[1]}


class MyList(list):
    pass


def func(x):
    return x + 1


for proto in range(pickle.HIGHEST_PROTOCOL + 1):
    for v in (None, True, 2 ** 100, 1.5, "é😀\ud800", b"b", (1, (2,)), [1, [2]], {"k": {1, 2}}, frozenset([1]), Point(1, [2]), Color.RED, range(3), complex(1, 2), bytearray(b"x"), func, Point, len, slice(1, 2), ...):
        assert pickle.loads(pickle.dumps(v, proto)) == v, (proto, v)
    st = pickle.loads(pickle.dumps(State(), proto))
    if proto >= 2:
        sl, nw = pickle.loads(pickle.dumps(Slots(), proto)), pickle.loads(pickle.dumps(New(1, b=2), proto))
        assert (sl.p, sl.q) == (1, [2]) and nw.ab == (1, 2)
    ml = MyList([1])
    ml.tag = "t"
    ml = pickle.loads(pickle.dumps(ml, proto))
    print(proto, st.a, st.lock, ml, ml.tag)
r = pickle.loads(pickle.dumps(loop))
assert r[1] is r
for bad in (lambda: pickle.dumps(lambda: 0), lambda: pickle.dumps(i for i in []), lambda: pickle.loads(b"garbage"), lambda: pickle.loads(b""), lambda: pickle.loads(pickle.dumps(1)[:-1])):
    try:
        bad()
    except (pickle.PickleError, AttributeError, TypeError, EOFError, KeyError, IndexError) as e:
        print(type(e).__name__)


class Safe(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"refused {module}.{name}")


try:
    Safe(io.BytesIO(pickle.dumps(Point(1, [])))).load()
except pickle.UnpicklingError as e:
    print(e)
f = io.BytesIO()
p = pickle.Pickler(f)
p.dump([1])
p.dump({"two": 2})
f.seek(0)
print(pickle.load(f), pickle.load(f), copy.replace(Point(1, []), x=5), pickle.loads(pickle.dumps(ValueError("v", 1))).args)
