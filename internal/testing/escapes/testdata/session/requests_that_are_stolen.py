# attacks its session with a thread that answers the host, and reads its requests
# ends: variously
import os, threading
def steal():
    while True:
        os.write(3, b'stolen' * 100)
        os.read(3, 65536)
threading.Thread(target=steal, daemon=True).start()
