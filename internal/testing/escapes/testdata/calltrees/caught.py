# begins another tree of calls when one is ended
# harm: hangs
# with: calltree
grown = tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))

while True:
    try: grown()
    except BaseException: pass
