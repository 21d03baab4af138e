# calls functions in C in a tree of prints
# harm: hangs
# with: calltree
tree(lambda f: giving(1, partial(print, file=thing(write=f))))()
