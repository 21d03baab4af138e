# asks the kernel for the process's session keyring
# docker: seccomp
# local: seccomp
# with: syscall
syscall(250, 219, 0, -3, 1)
print(CANARY_PROOF)
