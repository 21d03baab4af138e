# switches off address randomisation
# docker: seccomp
# local: seccomp
# with: syscall
syscall(135, 92, 0x0040000)
print(CANARY_PROOF)
