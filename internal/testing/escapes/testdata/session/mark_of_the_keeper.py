# attacks its session by sending the keeper's mark
# ends: variously
import gc, os
for o in gc.get_objects():
    if isinstance(o, tuple):
        for x in o:
            if isinstance(x, bytes) and len(x) == 16:
                os.write(3, x)
