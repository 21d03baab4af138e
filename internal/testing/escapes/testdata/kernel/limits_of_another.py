# changes the limits of a process of the host
# with: syscall
import resource
resource.prlimit(CANARY_VICTIM, resource.RLIMIT_NOFILE, (9, 9))
print(CANARY_PROOF)
