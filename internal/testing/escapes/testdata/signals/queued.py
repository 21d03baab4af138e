# queues a signal to a process of the host
import ctypes
c = ctypes.CDLL(None, use_errno=True)
if c.sigqueue(CANARY_VICTIM, 9, ctypes.c_void_p(0)): raise OSError(ctypes.get_errno(), 'refused')
import time
time.sleep(0.1)
