# requests access to I/O ports (iopl)
# where: the machine has them
# with: syscall
syscall(172, 9999, 3)
print(CANARY_PROOF)
