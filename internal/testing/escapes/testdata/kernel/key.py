# adds a key to the kernel's keyring
# docker: seccomp
# local: seccomp
# with: syscall
syscall(248, 217, b'user', b'rlm-escape', b'y', 1, -1)
print(CANARY_PROOF)
