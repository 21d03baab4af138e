# calls functions in C in a tree of reflected comparisons
# harm: hangs
# with: calltree
tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))()
