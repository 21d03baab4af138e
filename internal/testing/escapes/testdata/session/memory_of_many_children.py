# attacks its session with many children that fill memory
# ends: variously
import os, time
while True:
    try:
        if os.fork() == 0:
            x = b'x' * (100 << 20)
            time.sleep(100)
            os._exit(0)
    except (OSError, MemoryError): pass
