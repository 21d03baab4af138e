# makes a ring of io_uring
# local: seccomp rlimits
# docker: seccomp limits
# with: syscall
syscall(425, 425, 4, ctypes.create_string_buffer(256))
print(CANARY_PROOF)
