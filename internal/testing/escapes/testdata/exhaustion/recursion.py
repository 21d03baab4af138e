# recurses in C
# harm: grows
# ends: variously
import sys
sys.setrecursionlimit(10 ** 9)
class A:
    def __repr__(self): return repr([self])
x = []
for _ in range(10 ** 7): x = [x]
repr(x)
