# makes a set of a million numbers with one hash
# harm: hangs
import sys
m = sys.hash_info.modulus
set(range(0, m * 1_000_000, m))
