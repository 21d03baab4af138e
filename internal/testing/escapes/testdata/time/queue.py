# feeds an endless iterator to a queue that keeps nothing
# harm: hangs
import collections, itertools
collections.deque(itertools.repeat(0), maxlen=0)
