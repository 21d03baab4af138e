# signals a thread of a process of the host
import ctypes, platform
c = ctypes.CDLL(None, use_errno=True)
if c.syscall(234 if platform.machine() == 'x86_64' else 131, CANARY_VICTIM, CANARY_VICTIM, 9): raise OSError(ctypes.get_errno(), 'refused')
import time
time.sleep(0.1)
