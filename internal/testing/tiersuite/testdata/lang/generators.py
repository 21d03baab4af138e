# Generators: send, throw, close, yield from, return values, laziness.
def echo():
    got = []
    try:
        while True:
            got.append((yield len(got)))
    except ValueError as e:
        yield f"threw {e}"
    finally:
        print("cleanup", got)


g = echo()
print(next(g), g.send("a"), g.send("b"), g.throw(ValueError("v")))
g.close()


def inner():
    x = yield 1
    print("inner got", x)
    return "inner result"


def outer():
    r = yield from inner()
    print("outer got", r)
    yield from "ab"
    return "end"


o = outer()
print(next(o), o.send("hello"), next(o))
try:
    next(o)
except StopIteration as e:
    print("value", e.value)


def fib():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


from itertools import islice, takewhile

print(list(islice(fib(), 15)), list(takewhile(lambda v: v < 50, fib())))


def flatten(v):
    for i in v:
        if isinstance(i, list):
            yield from flatten(i)
        else:
            yield i


print(list(flatten([1, [2, [3, [4]], 5]])))


def bad():
    yield 1
    raise StopIteration("x")


try:
    list(bad())
except RuntimeError as e:
    print(e, repr(e.__cause__))


def stubborn():
    try:
        yield 1
    except GeneratorExit:
        yield 2


s = stubborn()
next(s)
try:
    s.close()
except RuntimeError as e:
    print(e)


def once():
    try:
        yield
    except GeneratorExit:
        return "closed value"


c = once()
next(c)
print(c.close())
gen = (i * i for i in range(3))
print(gen.gi_running, next(gen), gen.gi_frame is not None, list(gen), gen.gi_frame)
try:
    echo().send(1)
except TypeError as e:
    print(e)


def self_next():
    yield next(me)


me = self_next()
try:
    next(me)
except ValueError as e:
    print(e)


def pipeline(*stages):
    def run(source):
        for st in stages:
            source = st(source)
        return source
    return run


evens = lambda it: (i for i in it if i % 2 == 0)
squares = lambda it: (i * i for i in it)
print(list(pipeline(evens, squares)(range(10))))


def with_finally():
    try:
        yield 1
        yield 2
    finally:
        print("finally ran")


for v in with_finally():
    print(v)
    break
print("after break")
