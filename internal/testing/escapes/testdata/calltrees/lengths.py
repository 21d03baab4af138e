# calls functions in C in a tree of lists of things that estimate their length
# harm: hangs
# with: calltree
tree(lambda f: partial(list, thing(__iter__=giving(iter(()), f), __length_hint__=giving(0, f))))()
