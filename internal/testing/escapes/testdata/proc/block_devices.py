# lists the disks of the machine
# docker: masks
import os
print(CANARY_PROOF if os.listdir('/sys/block') else 1 / 0)
