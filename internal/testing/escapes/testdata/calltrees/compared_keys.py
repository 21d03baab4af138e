# calls functions in C in a tree of keys of a sort that compare themselves
# harm: hangs
# with: calltree
from functools import cmp_to_key
tree(lambda f: partial(sorted, [thing(__add__=f)] * 3, key=cmp_to_key(operator.add)))()
