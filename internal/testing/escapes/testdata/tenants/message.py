# makes a System V message queue for another tenant
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
held = libc.msgget(777123, 0o1666)
if held < 0: raise OSError(ctypes.get_errno(), 'refused')
# in another sandbox
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
found = libc.msgget(777123, 0)
if found < 0: raise OSError(ctypes.get_errno(), 'refused')
libc.msgctl(found, 0, None)
print(CANARY_PROOF)
