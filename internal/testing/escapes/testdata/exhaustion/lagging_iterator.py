# keeps what one of two iterators has not read
# harm: grows
# ends: variously
import collections, itertools
a, b = itertools.tee(itertools.count())
collections.deque(b, maxlen=0)
