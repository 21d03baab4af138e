# calls functions in C in a tree of running totals
# harm: hangs
# with: calltree
from itertools import accumulate
tree(lambda f: partial(next, accumulate(map(operator.or_, results(f), results(f)))))()
