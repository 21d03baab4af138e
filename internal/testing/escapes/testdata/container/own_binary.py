# opens its own interpreter for writing
# unsafe: an interpreter that runs is busy
import os
fd = os.open('/proc/self/exe', os.O_PATH)
os.open(f'/proc/self/fd/{fd}', os.O_WRONLY)
print(CANARY_PROOF)
