# Trees of calls of functions in C. Each level calls the one below twice, without Python and, where
# CPython lets it, without a loop. So grow(levels)() makes 2^len(levels) calls.
import codecs, heapq, itertools, json, operator, re, struct
from functools import partial
from itertools import accumulate, chain, compress, repeat, starmap


def giving(value, f):
    """Return a function that calls f and returns a value. It ignores one parameter."""
    return partial(next, compress(repeat(value), starmap(f, repeat(()))))


def thing(**methods):
    """Return an object whose methods are functions that get no self."""
    return type("Thing", (), methods)()


def refuse(f):
    return giving(NotImplemented, f)


def results(f):
    return starmap(f, repeat(()))


def sentinel(f):
    s = thing(__eq__=f)
    s.__eq__ = f
    ends = iter(giving(s, f), thing(__eq__=giving(False, f)))
    return partial(next, ends)


def handler(f, number=itertools.count()):
    name = f"tree {next(number)}"
    codecs.register_error(name, giving(("x", 1), f))
    encoded = starmap("\udc80".encode, repeat(("ascii", name)))
    return partial(next, map(operator.add, encoded, encoded))


# Each makes a function without parameters, whose result is true, of one that has a true result
# and ignores one parameter.
LEVELS = [
    lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)),
    lambda f: partial(operator.eq, thing(__eq__=refuse(f)), thing(__eq__=f)),
    lambda f: partial(operator.add, thing(__add__=refuse(f)), thing(__radd__=f)),
    lambda f: partial(operator.iadd, thing(__iadd__=refuse(f), __add__=f), 1),
    lambda f: partial(divmod, thing(__divmod__=refuse(f)), thing(__rdivmod__=f)),
    lambda f: partial(range, thing(__index__=giving(3, f)), thing(__index__=giving(9, f))),
    lambda f: partial(slice(*[thing(__index__=giving(3, f))] * 2).indices, 9),
    lambda f: partial(struct.pack, "ii", *[thing(__index__=giving(3, f))] * 2),
    lambda f: partial(complex, *[thing(__float__=giving(1.0, f))] * 2),
    lambda f: partial(operator.mod, "%d%x", (thing(__int__=giving(7, f), __index__=giving(7, f)),) * 2),
    lambda f: partial(operator.mod, "%s%s", (thing(__str__=giving("x", f)),) * 2),
    lambda f: partial("{}{}".format, *[thing(__format__=giving("x", f))] * 2),
    lambda f: partial(repr, [thing(__repr__=giving("x", f))] * 2),
    lambda f: partial(sorted, (2, 1), key=f),
    lambda f: partial(max, (2, 1), key=f),
    lambda f: partial(sum, [thing(__radd__=f)] * 2),
    lambda f: partial(heapq.heappushpop, [thing(__lt__=f)] * 2, thing(__lt__=f)),
    lambda f: partial(json.dumps, [thing(), thing()], default=giving("x", f)),
    lambda f: partial(json.loads, '[{"a": 1}, {"b": 2}]', object_hook=f),
    lambda f: partial(re.compile("a").sub, giving("b", f), "aa"),
    lambda f: partial(next, map(operator.or_, results(f), results(f))),
    lambda f: partial(next, accumulate(map(operator.or_, results(f), results(f)))),
    lambda f: partial(next, chain.from_iterable(map(repeat, results(f), results(f)))),
    lambda f: partial(next, zip(results(f), results(f))),
    lambda f: partial(operator.attrgetter("a", "a"), thing(a=property(f))),
    lambda f: partial(operator.itemgetter(0, 0), thing(__getitem__=f)),
    lambda f: partial(operator.methodcaller("m"), thing(m=property(giving(f, f)))),
    lambda f: partial(dict.fromkeys, [thing(__hash__=giving(1, f))] * 2),
    lambda f: partial(frozenset, [thing(__hash__=giving(1, f), __eq__=f), thing(__hash__=giving(1, f), __eq__=f)]),
    lambda f: partial(pow, thing(__pow__=refuse(f)), thing(__rpow__=f)),
    lambda f: partial(operator.contains, [thing(__eq__=refuse(f))], thing(__eq__=f)),
    lambda f: partial(bytes, [thing(__index__=giving(3, f))] * 2),
    sentinel,
    handler,
]


def grow(levels):
    f = giving(1, partial(bool, 1))
    for level in levels:
        f = giving(1, LEVELS[level % len(LEVELS)](f))
    return f
