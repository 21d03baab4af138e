# attacks its session with a thread that reads the host's requests and answers them
# ends: variously
import os, threading, time
reads = threading.Event()
def steal():
    reads.set()
    while os.read(3, 65536): os.write(3, b'stolen' * 100)
threading.Thread(target=steal, daemon=True).start()
reads.wait()
time.sleep(0.1)
