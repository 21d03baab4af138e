# joins a namespace
# root: it is the right of root
# fresh: it may change where it is
# with: syscall
fd = os.open('/proc/self/ns/uts', os.O_RDONLY)
syscall(308, 268, fd, 0)
print(CANARY_PROOF)
