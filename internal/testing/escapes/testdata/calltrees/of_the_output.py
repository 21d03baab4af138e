# leaves a tree of calls where the runtime flushes its output
# harm: hangs
# with: calltree
import sys
grown = tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))

sys.stdout = thing(write=giving(1, grown), flush=giving(None, grown))
print(1)
