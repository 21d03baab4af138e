# makes a file of huge pages, of which the machine has a bounded number
# where: the kernel has them
# with: syscall
os.close(syscall(319, 279, b'x', 4))
print(CANARY_PROOF)
