# joins a namespace
# root: it is the right of root
# fresh: it may change where it is
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def syscall(amd64, arm64, *args):
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in (amd64 if platform.machine() == 'x86_64' else arm64, *args)]
    got = libc.syscall(*args)
    if got == -1: raise OSError(ctypes.get_errno(), 'the call failed')
    return got
fd = os.open('/proc/self/ns/uts', os.O_RDONLY)
syscall(308, 268, fd, 0)
print(CANARY_PROOF)
