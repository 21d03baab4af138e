# calls functions in C in a tree of keys of a sort
# harm: hangs
# with: calltree
tree(lambda f: partial(sorted, (2, 1), key=f))()
