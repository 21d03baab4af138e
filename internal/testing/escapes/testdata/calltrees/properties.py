# calls functions in C in a tree of properties
# harm: hangs
# with: calltree
tree(lambda f: partial(operator.attrgetter('a', 'a'), thing(a=property(f))))()
