# writes the caches of all disks of the machine
# local: seccomp
# docker: seccomp
# with: syscall
syscall(306, 267, os.open('/usr/lib', os.O_RDONLY))
print(CANARY_PROOF)
