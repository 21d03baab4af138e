# lists all mounts by the new calls
# where: the kernel has them
# with: syscall
syscall(458, 458, (ctypes.c_uint64 * 4)(32, 2**64 - 1), (ctypes.c_uint64 * 100)(), 100, 0)
print(CANARY_PROOF)
