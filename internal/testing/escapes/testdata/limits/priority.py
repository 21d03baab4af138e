# raises its scheduling priority
# root: it is the right of root
import os
os.nice(-5)
print(CANARY_PROOF)
