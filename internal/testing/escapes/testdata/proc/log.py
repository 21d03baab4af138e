# opens the kernel's log
# fake: /proc/ kmsg
import os
print(CANARY_PROOF if os.read(os.open('/proc/kmsg', os.O_RDONLY | os.O_NONBLOCK), 9) else 1 / 0)
