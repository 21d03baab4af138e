# calls functions in C in a tree of members of sets with one hash
# harm: hangs
# with: calltree
tree(lambda f: partial(frozenset, [thing(__hash__=giving(1, f), __eq__=f), thing(__hash__=giving(1, f), __eq__=f)]))()
