# calls functions in C in a tree while the host answers a call
# with: late_call calltree
# harm: hangs
# ends: variously
grown = tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))
start()
grown()
