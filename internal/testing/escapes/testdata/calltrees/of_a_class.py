# has a tree of calls in the class of a variable, which the runtime looks at
# harm: hangs
# with: calltree
grown = tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))

x = thing(__class__=property(giving(int, grown)), __len__=giving(1, grown))
isinstance(x, str)
