# calls functions in C in a tree of chains
# harm: hangs
# with: calltree
from itertools import chain
tree(lambda f: partial(next, chain.from_iterable(map(repeat, results(f), results(f)))))()
