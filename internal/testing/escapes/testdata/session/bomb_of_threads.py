# attacks its session with endless new threads
# ends: variously
import threading, time
while True:
    try: threading.Thread(target=time.sleep, args=(100,)).start()
    except RuntimeError: pass
