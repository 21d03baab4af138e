# asks for real-time use of the disks
# root: it is the right of root
# with: syscall
syscall(251, 30, 1, 0, 1 << 13)
syscall(251, 30, 1, 0, 0)
print(CANARY_PROOF)
