# attacks its session with all signals to the parent
# ends: variously
import os
for s in range(1, 65):
    try: os.kill(os.getppid(), s)
    except OSError: pass
