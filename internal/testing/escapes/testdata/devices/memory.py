# opens the memory of the machine
# unsafe: the machine may not have it
open('/dev/mem', 'rb')
print(CANARY_PROOF)
