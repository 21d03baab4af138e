# takes pseudo-terminals, of which the machine has a bounded number
# docker: masks
import os
held = [os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY) for _ in range(4)]
# in another sandbox
import os
fd = os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)
if os.major(os.fstat(fd).st_rdev) == 5: print(CANARY_PROOF)
