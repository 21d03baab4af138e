# searches fresh memory for what the tenant before has left
# one: process
held = [CANARY_PROOF.encode() * 200 + bytes(i) for i in range(3000)]
pinned = bytes(9000)
del held
# in the next sandbox
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
for n in [*range(4900, 8100)] * 2:
    if CANARY_PROOF.encode() in ctypes.string_at(libc.malloc(n), n): print(CANARY_PROOF)
