# sees which parts of a shared file other programs have read
# where: the kernel has it
# with: syscall
syscall(451, 451, os.open(os.__file__, os.O_RDONLY), (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)(), 0)
print(CANARY_PROOF)
