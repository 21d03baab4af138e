# asks for real-time use of the disks
# root: it is the right of root
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def syscall(amd64, arm64, *args):
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in (amd64 if platform.machine() == 'x86_64' else arm64, *args)]
    got = libc.syscall(*args)
    if got == -1: raise OSError(ctypes.get_errno(), 'the call failed')
    return got
syscall(251, 30, 1, 0, 1 << 13)
syscall(251, 30, 1, 0, 0)
print(CANARY_PROOF)
