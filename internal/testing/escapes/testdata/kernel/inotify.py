# watches which programs the host starts
# local: seccomp
# docker: seccomp
# with: syscall
watch = syscall(294, 26, 0)
syscall(254, 27, watch, ctypes.create_string_buffer(b'/usr/bin'), 0x20)
print(CANARY_PROOF)
