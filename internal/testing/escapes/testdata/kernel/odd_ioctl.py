# asks a file system by an ioctl that no runtime needs
# local: seccomp
# docker: seccomp
# with: syscall
import fcntl
fcntl.ioctl(os.open('/usr/lib', os.O_RDONLY), 0x5460, bytes(8))
print(CANARY_PROOF)
