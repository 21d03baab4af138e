# multiplies a million numbers
# harm: hangs
import math
math.prod(range(1, 3_000_000))
