# calls functions in C in a tree of powers of three operands
# harm: hangs
# with: calltree
tree(lambda f: partial(pow, thing(__pow__=refuse(f)), thing(__rpow__=f)))()
