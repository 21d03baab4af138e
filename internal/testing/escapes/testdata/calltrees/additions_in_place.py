# calls functions in C in a tree of additions in place
# harm: hangs
# with: calltree
tree(lambda f: partial(operator.iadd, thing(__iadd__=refuse(f), __add__=f), 1))()
