# calls a tree of functions in C when the collector runs
# harm: hangs
# with: calltree
import gc
grown = tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))

x = thing()
x.itself, type(x).__del__ = x, grown
del x
gc.collect()
