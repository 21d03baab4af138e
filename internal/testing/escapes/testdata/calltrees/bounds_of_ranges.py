# calls functions in C in a tree of ranges with bounds that compute (__index__)
# harm: hangs
# with: calltree
tree(lambda f: partial(range, thing(__index__=giving(3, f)), thing(__index__=giving(9, f))))()
