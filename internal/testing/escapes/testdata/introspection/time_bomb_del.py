# writes a file when an object is garbage-collected
# ends: variously
import gc
class B:
    def __del__(self, open=open): open(CANARY_OPEN + '/bomb', 'w').close()
b = B()
b.b = b
del b
gc.collect()
