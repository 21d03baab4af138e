# __slots__, properties, class methods, private names.
class P:
    __slots__ = ("x", "__y", "__weakref__")
    kind = "slotted"

    def __init__(self, x, y):
        self.x, self.__y = x, y

    @property
    def y(self):
        "The y."
        return self.__y

    @y.setter
    def y(self, v):
        self.__y = v


p = P(1, 2)
p.y = 5
print(p.x, p.y, p._P__y, P.y.__doc__, hasattr(p, "__dict__"))
for action in ("p.z = 1", "del p.kind", "p.kind = 2", "P.y.fget()", "p.__y"):
    try:
        exec(action)
    except (AttributeError, TypeError) as e:
        print(action, "->", type(e).__name__, e)
del p.x
try:
    p.x
except AttributeError as e:
    print(e)


class Q(P):
    pass


q = Q(1, 2)
q.extra = 3
print(q.extra, q.__dict__, Q.__slots__)


class R(P):
    __slots__ = {"doc": "documented slot"}


print(R.__slots__, R.doc.__doc__)


class Shape:
    sides = 0

    @classmethod
    def make(cls, *a):
        return cls(*a)

    @staticmethod
    def area(w, h):
        return w * h

    def __private(self):
        return "hidden"

    def reveal(self):
        return self.__private()


class Sq(Shape):
    sides = 4

    def __private(self):
        return "other"


print(Sq.make().sides, Shape.area(2, 3), Sq().reveal(), Sq()._Sq__private())
print([n for n in vars(Shape) if "private" in n])


class RO:
    v = property(lambda self: 1)


try:
    RO().v = 2
except AttributeError as e:
    print(e)
try:
    del RO().v
except AttributeError as e:
    print(e)
