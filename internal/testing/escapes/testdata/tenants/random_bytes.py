# predicts the random bytes of another tenant
# before: import os; os.urandom = lambda n: bytes(n)
import os
print(os.urandom(16).hex())
# in another sandbox
import os
print(CANARY_PROOF if os.urandom(16).hex() == CANARY_SAID else 0)
