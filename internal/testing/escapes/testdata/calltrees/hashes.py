# calls functions in C in a tree of keys of dicts
# harm: hangs
# with: calltree
tree(lambda f: partial(dict.fromkeys, [thing(__hash__=giving(1, f))] * 2))()
