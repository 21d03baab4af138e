# calls functions in C in a tree after the host has cancelled it in a call
# with: calltree
# harm: hangs
# ends: variously
grown = tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))

try: ask('cancel')
except BaseException: pass
grown()
