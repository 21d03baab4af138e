# locks memory against swapping
# local: rlimits seccomp
# docker: limits
import ctypes, mmap
c = ctypes.CDLL(None, use_errno=True)
m = mmap.mmap(-1, 1 << 20)
if c.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), ctypes.c_size_t(1 << 20)): raise OSError(ctypes.get_errno(), 'refused')
print(CANARY_PROOF)
