# raises its own limit of open files
# local: rlimits
# docker: limits
# fresh: its limits may change
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
print(CANARY_PROOF)
