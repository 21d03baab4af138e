# makes System V shared memory for another tenant
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
held = libc.shmget(777123, 4096, 0o1666)
if held < 0: raise OSError(ctypes.get_errno(), 'refused')
# in another sandbox
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
found = libc.shmget(777123, 4096, 0)
if found < 0: raise OSError(ctypes.get_errno(), 'refused')
libc.shmctl(found, 0, None)
print(CANARY_PROOF)
