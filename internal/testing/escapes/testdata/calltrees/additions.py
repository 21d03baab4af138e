# calls functions in C in a tree of reflected additions
# harm: hangs
# with: calltree
tree(lambda f: partial(operator.add, thing(__add__=refuse(f)), thing(__radd__=f)))()
