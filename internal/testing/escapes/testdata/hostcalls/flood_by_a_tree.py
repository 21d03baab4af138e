# floods the host by a tree of functions in C
# with: calltree
f = giving(1, partial(ask, 1))
for _ in range(6): f = giving(1, partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))
f()
