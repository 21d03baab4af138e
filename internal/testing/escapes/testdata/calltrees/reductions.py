# calls functions in C in a tree of reductions
# harm: hangs
# with: calltree
from functools import reduce
tree(lambda f: partial(reduce, operator.add, [thing(__add__=f, __radd__=f)] * 3))()
