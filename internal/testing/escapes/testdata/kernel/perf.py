# counts events of the processor
# where: the machine counts
# with: syscall
syscall(298, 241, (ctypes.c_uint32 * 32)(1, 128, 0), 0, -1, -1, 0)
print(CANARY_PROOF)
