# lists /sys/kernel
# docker: masks
# local: mounts landlock namespaces
import os
print(CANARY_PROOF if os.listdir('/sys/kernel') else 1 / 0)
