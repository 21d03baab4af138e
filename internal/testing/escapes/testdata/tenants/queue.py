# makes a POSIX message queue for another tenant
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
held = libc.mq_open(b'/rlm-for-others', 0o102, 0o666, None)
if held < 0: raise OSError(ctypes.get_errno(), 'refused')
# in another sandbox
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
found = libc.mq_open(b'/rlm-for-others', 2)
if found < 0: raise OSError(ctypes.get_errno(), 'refused')
libc.mq_unlink(b'/rlm-for-others')
print(CANARY_PROOF)
