# calls functions in C in a tree of items
# harm: hangs
# with: calltree
tree(lambda f: partial(operator.itemgetter(0, 0), thing(__getitem__=f)))()
