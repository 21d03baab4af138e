# waits for its own lock
# harm: hangs
# ends: variously
import threading
l = threading.Lock()
l.acquire()
l.acquire()
