# compares kernel objects of processes (kcmp)
# where: the kernel has it
# with: syscall
syscall(312, 272, os.getpid(), os.getpid(), 0, 0, 0)
print(CANARY_PROOF)
