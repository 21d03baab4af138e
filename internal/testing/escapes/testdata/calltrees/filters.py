# calls functions in C in a tree of filters of filters
# harm: hangs
# with: calltree
tree(lambda f: partial(next, filter(f, filter(f, repeat(1)))))()
