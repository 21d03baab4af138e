# tells the kernel to forget memory of a process of the host
# where: the kernel has it
# with: syscall
fd = syscall(434, 434, CANARY_VICTIM, 0)
syscall(440, 440, fd, (ctypes.c_void_p * 2)(0, 0), 1, 20, 0)
print(CANARY_PROOF)
