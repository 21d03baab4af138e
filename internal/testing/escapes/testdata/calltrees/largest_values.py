# calls functions in C in a tree of keys of a maximum
# harm: hangs
# with: calltree
tree(lambda f: partial(max, (2, 1), key=f))()
