# Closures, cells and late binding.
def counter(start=0):
    n = start

    def step(by=1):
        nonlocal n
        n += by
        return n

    return step


a, b = counter(), counter(10)
print(a(), a(), b(), b(5), a())
print(a.__code__.co_freevars, [c.cell_contents for c in a.__closure__])
a.__closure__[0].cell_contents = 100
assert a() == 101


def outer():
    def inner():
        return late
    late = "bound after"
    return inner


assert outer()() == "bound after"


def unbound():
    def inner():
        return never
    if False:
        never = 1
    return inner


try:
    unbound()()
except NameError as e:
    print(e)


def local_error():
    print(v)
    v = 1


try:
    local_error()
except UnboundLocalError as e:
    print(e)


def make_adders():
    return [lambda x, i=i: x + i for i in range(3)]


print([f(10) for f in make_adders()])


class Acc:
    def __init__(self):
        total = 0

        def add(v):
            nonlocal total
            total += v
            self.total = total
            return self
        self.add = add


print(Acc().add(2).add(3).total)


def deleted():
    x = 1

    def read():
        return x
    del x
    try:
        return read()
    except NameError as e:
        return str(e)


print(deleted())
compose = lambda *fs: lambda x: x if not fs else compose(*fs[:-1])(fs[-1](x))
print(compose(str, lambda v: v + 1, len)("abcd"))
