# opens the terminal
# unsafe: there may be no terminal
import os
os.open('/dev/tty', os.O_RDWR)
print(CANARY_PROOF)
