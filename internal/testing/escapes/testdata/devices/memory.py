# opens the memory of the machine through /dev/mem
# unsafe: the machine may not have it
open('/dev/mem', 'rb')
print(CANARY_PROOF)
