# calls functions in C in a tree of searches in lists
# harm: hangs
# with: calltree
tree(lambda f: partial(operator.contains, [thing(__eq__=refuse(f))], thing(__eq__=f)))()
