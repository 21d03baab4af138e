# opens the memory of another process
import os
os.open(f'/proc/{CANARY_VICTIM}/mem', os.O_RDWR)
print(CANARY_PROOF)
