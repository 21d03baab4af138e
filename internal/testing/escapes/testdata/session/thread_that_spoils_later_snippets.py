# attacks its session with a thread that spoils later snippets
# ends: variously
import threading, os, time
def f():
    time.sleep(0.2)
    os._exit(5)
threading.Thread(target=f, daemon=True).start()
