# computes a root of a number of 500 million bits
# harm: hangs
import math
math.isqrt(1 << 500_000_000)
