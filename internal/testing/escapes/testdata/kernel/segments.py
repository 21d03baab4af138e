# writes a table of segments of the processor
# docker: seccomp
# local: seccomp
# with: syscall
syscall(154, 9999, 1, (ctypes.c_uint32 * 4)(0, 0, 0, 0x51), 16)
print(CANARY_PROOF)
