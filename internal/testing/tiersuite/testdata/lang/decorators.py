# Decorators on functions and classes, with and without arguments.
import functools

log = []


def traced(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        log.append((fn.__name__, args, kwargs))
        return fn(*args, **kwargs)
    return wrapper


def times(n):
    def deco(fn):
        @functools.wraps(fn)
        def wrapper(*a):
            return [fn(*a) for _ in range(n)]
        return wrapper
    return deco


@traced
def add(a, b=2):
    """Adds."""
    return a + b


@times(3)
@traced
def hello(name):
    return f"hi {name}"


assert add(1) == 3 and add(a=1, b=1) == 2
print(hello("you"), log)
print(add.__name__, add.__doc__, add.__wrapped__.__code__.co_varnames)


def register(table):
    def deco(cls):
        table[cls.__name__] = cls
        cls.tag = cls.__name__.lower()
        return cls
    return deco


table = {}


@register(table)
class Apple:
    @staticmethod
    def s(x):
        return x + 1

    @classmethod
    def c(cls):
        return cls.tag

    @property
    def p(self):
        return self._p

    @p.setter
    def p(self, v):
        self._p = v * 2

    @p.deleter
    def p(self):
        del self._p

    @functools.cached_property
    def slow(self):
        print("computed")
        return 7


a = Apple()
a.p = 4
print(table, Apple.s(1), Apple.c(), a.p, a.slow, a.slow)
del a.p
try:
    a.p
except AttributeError as e:
    print(e)


class Memo:
    def __init__(self, fn):
        self.fn, self.hits = fn, 0
        functools.update_wrapper(self, fn)

    def __get__(self, obj, owner=None):
        return self if obj is None else functools.partial(self, obj)

    def __call__(self, *a):
        self.hits += 1
        return self.fn(*a)


class K:
    @Memo
    def m(self, x):
        return x * 10


print(K().m(4), K.m.hits, K.m.__name__)
decos = [traced, lambda f: f]


@decos[1]
@(lambda f: f)
def odd():
    return "any expression may decorate"


print(odd())
