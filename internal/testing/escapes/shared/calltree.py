import operator
from functools import partial
from itertools import compress, repeat, starmap
def giving(value, f): return partial(next, compress(repeat(value), starmap(f, repeat(()))))
def refuse(f): return giving(NotImplemented, f)
def results(f): return starmap(f, repeat(()))
def thing(**methods): return type('Thing', (), methods)()
def tree(level):
    f = giving(1, partial(bool, 1))
    for _ in range(40): f = giving(1, level(f))
    return f
