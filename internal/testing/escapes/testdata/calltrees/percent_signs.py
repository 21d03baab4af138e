# calls functions in C in a tree of texts with percent signs
# harm: hangs
# with: calltree
tree(lambda f: partial(operator.mod, '%d%x', (thing(__int__=giving(7, f), __index__=giving(7, f)),) * 2))()
