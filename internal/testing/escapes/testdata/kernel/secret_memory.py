# makes memory that the kernel cannot swap or inspect
# where: the kernel has it
# with: syscall
os.close(syscall(447, 447, 0))
print(CANARY_PROOF)
