# calls functions in C in a tree of iterators with an end, as anybody could write it
# harm: hangs
import itertools
from functools import partial
class End:
    __slots__ = ('__eq__',)
    __hash__ = None
    __bool__ = bool
x, base = End(), End()
x.__eq__, base.__eq__ = None, bool
it = iter(itertools.repeat(x).__next__, base)
for _ in range(45):
    s = End()
    s.__eq__ = partial(next, it)
    it = iter(it.__next__, s)
next(it)
