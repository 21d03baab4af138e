# opens the memory of the machine through /dev/mem
# fake: /dev/ mem
open('/dev/mem', 'rb')
print(CANARY_PROOF)
