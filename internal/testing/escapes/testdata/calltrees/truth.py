# calls functions in C in a tree of values that say whether they are true
# harm: hangs
# with: calltree
tree(lambda f: partial(all, [thing(__bool__=giving(True, f))] * 2))()
