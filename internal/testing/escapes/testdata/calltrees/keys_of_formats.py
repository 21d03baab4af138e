# calls functions in C in a tree of formats that look names up
# harm: hangs
# with: calltree
tree(lambda f: partial('{a}{b}'.format_map, thing(__getitem__=giving('x', f))))()
