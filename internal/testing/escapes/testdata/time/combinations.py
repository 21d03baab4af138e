# computes a binomial coefficient of millions of digits
# harm: hangs
import math
x = math.comb(40_000_000, 20_000_000)
