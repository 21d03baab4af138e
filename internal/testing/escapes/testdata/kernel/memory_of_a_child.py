# reads a child's memory
# docker: seccomp
# local: seccomp
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def syscall(amd64, arm64, *args):
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in (amd64 if platform.machine() == 'x86_64' else arm64, *args)]
    got = libc.syscall(*args)
    if got == -1: raise OSError(ctypes.get_errno(), 'the call failed')
    return got
import time
pid = os.fork()
if pid == 0:
    time.sleep(9)
    os._exit(0)
b = ctypes.create_string_buffer(64)
v = (ctypes.c_void_p * 2)(ctypes.addressof(b), 64)
try: syscall(310, 270, pid, v, 1, v, 1, 0)
finally: os.kill(pid, 9)
print(CANARY_PROOF)
