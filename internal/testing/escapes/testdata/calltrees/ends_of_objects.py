# calls functions in C in a tree of objects that end (__del__)
# harm: hangs
# with: calltree
tree(lambda f: partial(next, zip(starmap(type('T', (), dict(__del__=f)), repeat(())), results(f))))()
