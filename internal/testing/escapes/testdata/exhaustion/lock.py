# waits for a lock that it holds itself
# harm: hangs
# ends: variously
import threading
l = threading.Lock()
l.acquire()
l.acquire()
