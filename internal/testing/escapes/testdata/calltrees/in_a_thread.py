# calls a tree of functions in C in each of four threads
# harm: hangs
# with: calltree
# ends: variously
import threading
grown = tree(lambda f: partial(operator.lt, thing(__lt__=refuse(f)), thing(__gt__=f)))

threads = [threading.Thread(target=grown) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
