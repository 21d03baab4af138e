# searches an endless iterator in one call
# harm: hangs
import itertools
-1 in itertools.count()
