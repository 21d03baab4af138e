# opens the kernel's log
# root: it is for root
import os
os.open('/proc/kmsg', os.O_RDONLY | os.O_NONBLOCK)
print(CANARY_PROOF)
