# calls functions in C in a tree of maps
# harm: hangs
# with: calltree
tree(lambda f: partial(next, map(operator.or_, results(f), results(f))))()
