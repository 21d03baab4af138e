# calls functions in C in a tree of iterators that the module operator calls
# harm: hangs
import itertools, operator
from functools import partial
class End:
    __slots__ = ('__eq__',)
    __hash__ = None
    __bool__ = bool
x, base = End(), End()
base.__eq__ = bool
it = iter(itertools.repeat(x).__next__, base)
for _ in range(45):
    s = End()
    s.__eq__ = partial(next, it)
    it = iter(partial(operator.call, it.__next__), s)
next(it)
