# attacks its session by ending its main thread alone
# ends: variously
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)
