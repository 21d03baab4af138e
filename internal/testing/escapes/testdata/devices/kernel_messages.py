# opens the kernel's messages
# unsafe: the machine may not have it
import os
print(CANARY_PROOF if os.read(os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK), 999) else 1 / 0)
