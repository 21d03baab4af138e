# opens the trigger of the kernel
# unsafe: the kernel may refuse it to all
import os
os.open('/proc/sysrq-trigger', os.O_WRONLY)
print(CANARY_PROOF)
