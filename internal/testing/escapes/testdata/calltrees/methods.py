# calls functions in C in a tree of methods that are looked up
# harm: hangs
# with: calltree
tree(lambda f: partial(operator.methodcaller('m'), thing(m=property(giving(f, f)))))()
