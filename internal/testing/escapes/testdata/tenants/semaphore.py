# makes a System V semaphore for another tenant
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
held = libc.semget(777123, 1, 0o1666)
if held < 0: raise OSError(ctypes.get_errno(), 'refused')
# in another sandbox
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
found = libc.semget(777123, 1, 0)
if found < 0: raise OSError(ctypes.get_errno(), 'refused')
libc.semctl(found, 0, 0)
print(CANARY_PROOF)
