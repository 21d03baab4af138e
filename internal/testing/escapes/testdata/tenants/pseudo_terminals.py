# takes pseudo-terminals, of which the machine has a bounded number
import os
held = [os.openpty() for _ in range(4)]
# in another sandbox
import os
print(CANARY_PROOF, os.openpty())
