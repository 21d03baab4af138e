# opens 1000 files at once
# local: rlimits
# docker: limits
# fresh: it has no descriptors left
import os
held = [os.open('/dev/null', os.O_RDONLY) for _ in range(1000)]
print(CANARY_PROOF)
