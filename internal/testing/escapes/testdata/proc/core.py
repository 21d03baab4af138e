# opens the machine's memory
# unsafe: the kernel may refuse it to all
open('/proc/kcore', 'rb')
print(CANARY_PROOF)
