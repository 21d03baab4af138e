# calls functions in C in a tree of attributes that are missing
# harm: hangs
# with: calltree
tree(lambda f: partial(operator.attrgetter('a', 'b'), thing(__getattr__=f)))()
