# computes the factorial of 20 million
# harm: hangs
import math
x = math.factorial(20_000_000)
