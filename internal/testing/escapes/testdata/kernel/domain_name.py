# sets the domain of the machine
# root: it is the right of root
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def syscall(amd64, arm64, *args):
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in (amd64 if platform.machine() == 'x86_64' else arm64, *args)]
    got = libc.syscall(*args)
    if got == -1: raise OSError(ctypes.get_errno(), 'the call failed')
    return got
name = os.uname()
libc.getdomainname(held := ctypes.create_string_buffer(65), 65)
syscall(171, 162, held, len(held.value))
print(CANARY_PROOF)
