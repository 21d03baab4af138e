# loads a BPF map into the kernel
# root: it is the right of root
# with: syscall
syscall(321, 280, 0, (ctypes.c_uint32 * 16)(2, 4, 4, 1), 64)
print(CANARY_PROOF)
