# searches the orders of 30 things in one call
# harm: hangs
import itertools
-1 in itertools.permutations(range(30))
