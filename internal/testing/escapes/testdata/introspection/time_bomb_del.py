# writes when it is garbage-collected, after the snippet
# ends: variously
import gc
class B:
    def __del__(self, open=open): open(CANARY_OPEN + '/bomb', 'w').close()
b = B()
b.b = b
del b
gc.collect()
