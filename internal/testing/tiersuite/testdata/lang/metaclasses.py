# Metaclasses, __prepare__, type() with three arguments, __class_getitem__.
class Meta(type):
    @classmethod
    def __prepare__(mcs, name, bases, **kw):
        print("prepare", name, sorted(kw))
        return {"prepared": True}

    def __new__(mcs, name, bases, ns, **kw):
        ns["added"] = list(k for k in ns if not k.startswith("__"))
        return super().__new__(mcs, name, bases, ns)

    def __init__(cls, name, bases, ns, **kw):
        super().__init__(name, bases, ns)
        cls.kw = kw

    def __call__(cls, *a):
        print("creating", cls.__name__, a)
        return super().__call__(*a)

    def __len__(cls):
        return 42

    def __iter__(cls):
        return iter(cls.added)

    def __instancecheck__(cls, o):
        return o == "magic" or super().__instancecheck__(o)

    @property
    def shout(cls):
        return cls.__name__.upper()


class M(metaclass=Meta, flag=1):
    a = 1

    def __init__(self, v):
        self.v = v


print(M(3).v, len(M), list(M), M.kw, M.shout, isinstance("magic", M), type(M).__name__)


class N(M, flag=2):
    b = 2


print(N.added, N.kw, type(N) is Meta)
T = type("T", (object,), {"x": 1, "hi": lambda self: f"hi {self.x}"})
print(T().hi(), T.__name__, T.__module__)


class G:
    def __class_getitem__(cls, item):
        return (cls.__name__, item)


print(G[int], G["a", 1])


class OtherMeta(type):
    pass


try:
    class Conflict(M, metaclass=OtherMeta):
        pass
except TypeError as e:
    print(e)


class Registry(type):
    classes = {}

    def __init__(cls, name, bases, ns):
        Registry.classes[name] = cls
        super().__init__(name, bases, ns)


class R1(metaclass=Registry):
    pass


class R2(R1):
    pass


print(sorted(Registry.classes))


class Resolve:
    def __mro_entries__(self, bases):
        return (dict,)


class D(Resolve()):
    pass


print(D.__bases__, D(a=1))
