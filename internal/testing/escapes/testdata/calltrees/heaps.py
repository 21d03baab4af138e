# calls functions in C in a tree of heaps
# harm: hangs
# with: calltree
import heapq
tree(lambda f: partial(heapq.heappushpop, [thing(__lt__=f)] * 2, thing(__lt__=f)))()
