# calls functions in C in a tree of many kinds
# harm: hangs
# with: calltree
import heapq, json, re
kinds = [
    lambda f: partial(sorted, (2, 1), key=f), lambda f: partial(json.dumps, [thing(), thing()], default=giving('x', f)),
    lambda f: partial(re.compile('a').sub, giving('b', f), 'aa'), lambda f: partial(range, *[thing(__index__=giving(3, f))] * 2),
    lambda f: partial(operator.attrgetter('a', 'a'), thing(a=property(f))), lambda f: partial(sum, [thing(__radd__=f)] * 2),
]
f = giving(1, partial(bool, 1))
for i in range(42): f = giving(1, kinds[i % len(kinds)](f))
f()
