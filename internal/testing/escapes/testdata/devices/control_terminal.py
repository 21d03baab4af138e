# opens the terminal
# fake: /dev/ tty
import os
os.open('/dev/tty', os.O_RDWR)
print(CANARY_PROOF)
