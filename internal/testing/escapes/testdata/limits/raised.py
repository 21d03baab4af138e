# raises its own limit
# local: rlimits
# docker: limits
# fresh: its limits may change
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
print(CANARY_PROOF)
