# attacks its session by a bomb of threads
# ends: variously
import threading, time
while True:
    try: threading.Thread(target=time.sleep, args=(100,)).start()
    except RuntimeError: pass
