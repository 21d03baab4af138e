# Classes: data model, inheritance, super, operators, containers.
class Vec:
    def __init__(self, *xs):
        self.xs = tuple(xs)

    def __repr__(self):
        return f"Vec{self.xs}"

    def __eq__(self, o):
        return isinstance(o, Vec) and self.xs == o.xs

    def __hash__(self):
        return hash(self.xs)

    def __add__(self, o):
        return Vec(*(a + b for a, b in zip(self.xs, o.xs))) if isinstance(o, Vec) else NotImplemented

    def __radd__(self, o):
        return self if o == 0 else NotImplemented

    def __mul__(self, k):
        return Vec(*(a * k for a in self.xs))

    __rmul__ = __mul__

    def __matmul__(self, o):
        return sum(a * b for a, b in zip(self.xs, o.xs))

    def __neg__(self):
        return self * -1

    def __len__(self):
        return len(self.xs)

    def __getitem__(self, i):
        return Vec(*self.xs[i]) if isinstance(i, slice) else self.xs[i]

    def __contains__(self, v):
        return v in self.xs

    def __bool__(self):
        return any(self.xs)

    def __call__(self, i):
        return self.xs[i]

    def __lt__(self, o):
        return self.xs < o.xs


v, w = Vec(1, 2), Vec(3, 4)
print(v + w, 2 * v, v * 2, v @ w, -v, len(v), v[0], v[:1], 2 in v, bool(Vec(0)), v(1), sum([v, w]))
print(sorted([w, v]), {v: 1}[Vec(1, 2)], v != w, v > w, [*v])
try:
    v + 1
except TypeError as e:
    print(e)


class A:
    def who(self):
        return ["A"]


class B(A):
    def who(self):
        return ["B"] + super().who()


class C(A):
    def who(self):
        return ["C"] + super().who()


class D(B, C):
    def who(self):
        return ["D"] + super().who()


print(D().who(), [c.__name__ for c in D.__mro__])
try:
    type("Bad", (A, B), {})
except TypeError as e:
    print(str(e).splitlines()[0])


class Dyn:
    def __getattr__(self, name):
        if name.startswith("x_"):
            return name[2:]
        raise AttributeError(f"no {name}")

    def __setattr__(self, name, value):
        super().__setattr__(name, value * 2)

    def __delattr__(self, name):
        print("del", name)
        super().__delattr__(name)

    def __dir__(self):
        return ["b", "a"]


d = Dyn()
d.v = 4
print(d.x_foo, d.v, hasattr(d, "nope"), getattr(d, "nope", "dflt"), dir(d))
del d.v
print(vars(d))


class Base:
    subs = []

    def __init_subclass__(cls, /, tag=None, **kw):
        super().__init_subclass__(**kw)
        Base.subs.append((cls.__name__, tag))


class S1(Base, tag="one"):
    pass


class S2(S1):
    pass


print(Base.subs)


class Temp:
    def __get__(self, obj, owner):
        return "class" if obj is None else obj.__dict__.get("t", 0)

    def __set__(self, obj, v):
        if v < 0:
            raise ValueError("negative")
        obj.__dict__["t"] = v

    def __set_name__(self, owner, name):
        print("named", owner.__name__, name)


class Room:
    t = Temp()


r = Room()
r.t = 21
print(Room.t, r.t)
try:
    r.t = -1
except ValueError as e:
    print(e)


class Single:
    inst = None

    def __new__(cls, *a):
        if cls.inst is None:
            cls.inst = super().__new__(cls)
        return cls.inst


print(Single(1) is Single(2), isinstance(True, int), issubclass(D, A), type(d).__qualname__)
