# calls functions in C in a tree of sums
# harm: hangs
# with: calltree
tree(lambda f: partial(sum, [thing(__radd__=f)] * 2))()
