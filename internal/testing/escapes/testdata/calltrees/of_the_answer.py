# has a tree of calls for the text of its answer
# harm: hangs
# with: calltree
grown = tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))
thing(__repr__=giving('answer', grown))
