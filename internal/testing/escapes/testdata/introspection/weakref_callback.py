# reads a file in the callback of a weak reference
# ends: variously
import weakref
class D: pass
d = D()
r = weakref.ref(d, lambda r: print(open(CANARY_FILE).read()))
del d
