# raises an error whose text takes a tree of calls
# harm: hangs
# with: calltree
grown = tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))

class Error(Exception): __str__ = giving('error', grown)
raise Error
