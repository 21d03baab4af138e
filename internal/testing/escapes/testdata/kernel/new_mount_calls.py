# opens a file system with the new mount calls
# root: it is the right of root
# docker: seccomp privileges
# with: syscall
syscall(430, 430, b'tmpfs', 0)
print(CANARY_PROOF)
