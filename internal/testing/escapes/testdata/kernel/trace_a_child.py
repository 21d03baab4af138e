# traces a child
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
try: syscall(101, 117, 16, pid, 0, 0)
finally: os.kill(pid, 9)
print(CANARY_PROOF)
