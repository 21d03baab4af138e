# makes an AIO context, of which the machine has a bounded number
# local: seccomp
# docker: seccomp
# with: syscall
context = ctypes.c_ulong(0)
syscall(206, 0, 1, ctypes.byref(context))
print(CANARY_PROOF)
