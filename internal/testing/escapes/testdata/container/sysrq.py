# opens /proc/sysrq-trigger for writing
# unsafe: the kernel may refuse it to all
import os
os.open('/proc/sysrq-trigger', os.O_WRONLY)
print(CANARY_PROOF)
