# opens the memory of the machine through /proc/kcore
# unsafe: the kernel may refuse it to all
open('/proc/kcore', 'rb')
print(CANARY_PROOF)
