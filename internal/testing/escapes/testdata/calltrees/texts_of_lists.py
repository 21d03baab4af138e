# calls functions in C in a tree of texts of lists
# harm: hangs
# with: calltree
tree(lambda f: partial(repr, [thing(__repr__=giving('x', f))] * 2))()
