# calls functions in C in a tree of values that format themselves
# harm: hangs
# with: calltree
tree(lambda f: partial('{}{}'.format, *[thing(__format__=giving('x', f))] * 2))()
