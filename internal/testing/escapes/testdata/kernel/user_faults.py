# handles its own page faults (userfaultfd)
# docker: seccomp
# where: the kernel has them
# local: seccomp
# with: syscall
syscall(323, 282, 1)
print(CANARY_PROOF)
