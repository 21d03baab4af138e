# opens the kernel's messages
# fake: /dev/ kmsg
import os
print(CANARY_PROOF if os.read(os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK), 999) else 1 / 0)
