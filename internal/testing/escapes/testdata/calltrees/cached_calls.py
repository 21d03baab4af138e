# calls functions in C in a tree of arguments of cached calls
# harm: hangs
# with: calltree
from functools import lru_cache
tree(lambda f: partial(lru_cache(1)(max), *[thing(__hash__=giving(1, f), __gt__=f)] * 2))()
