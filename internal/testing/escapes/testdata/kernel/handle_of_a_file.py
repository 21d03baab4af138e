# opens a file by its handle
# where: /tmp has handles
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def syscall(amd64, arm64, *args):
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in (amd64 if platform.machine() == 'x86_64' else arm64, *args)]
    got = libc.syscall(*args)
    if got == -1: raise OSError(ctypes.get_errno(), 'the call failed')
    return got
h = (ctypes.c_uint32 * 34)(128)
m = ctypes.c_int()
syscall(303, 264, -100, b'/tmp', h, ctypes.byref(m), 0)
syscall(304, 265, -100, h, 0)
print(CANARY_PROOF)
