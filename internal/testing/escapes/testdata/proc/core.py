# opens the memory of the machine through /proc/kcore
# fake: /proc/ kcore
open('/proc/kcore', 'rb')
print(CANARY_PROOF)
