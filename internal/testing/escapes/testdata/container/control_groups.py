# lists the control groups
# local: mounts landlock namespaces
# docker: masks
import os
if os.listdir('/sys/fs/cgroup'): print(CANARY_PROOF)
