# calls functions in C in a tree of numbers that become floats
# harm: hangs
# with: calltree
tree(lambda f: partial(complex, *[thing(__float__=giving(1.0, f))] * 2))()
