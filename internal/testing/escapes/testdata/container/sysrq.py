# opens /proc/sysrq-trigger for writing
# fake: /proc/ sysrq-trigger
import os
os.open('/proc/sysrq-trigger', os.O_WRONLY)
print(CANARY_PROOF)
