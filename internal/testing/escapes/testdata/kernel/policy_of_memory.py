# decides on which nodes its memory lies
# where: the kernel has nodes
# with: syscall
syscall(238, 237, 0, 0, 0)
print(CANARY_PROOF)
