# watches all file systems
# root: it is the right of root
# with: syscall
syscall(300, 262, 0, 0)
print(CANARY_PROOF)
