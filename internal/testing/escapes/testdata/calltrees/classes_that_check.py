# calls functions in C in a tree of classes that check their instances
# harm: hangs
# with: calltree
tree(lambda f: partial(isinstance, 1, (thing(__instancecheck__=giving(False, f)), thing(__instancecheck__=f))))()
