# calls functions in C in a tree of slices with bounds that compute
# harm: hangs
# with: calltree
tree(lambda f: partial(slice(*[thing(__index__=giving(3, f))] * 2).indices, 9))()
