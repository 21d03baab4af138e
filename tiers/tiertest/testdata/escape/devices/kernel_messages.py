# opens the kernel's messages
# unsafe: the machine may not have it
import os
os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)
print(CANARY_PROOF)
