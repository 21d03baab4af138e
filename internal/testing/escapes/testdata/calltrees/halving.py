# calls functions in C in a tree of searches in sorted lists
# harm: hangs
# with: calltree
import bisect
tree(lambda f: partial(bisect.bisect_left, [thing(__lt__=f)] * 3, thing(__lt__=f)))()
