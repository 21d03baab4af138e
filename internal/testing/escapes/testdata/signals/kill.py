# kills a process of the host
import os
os.kill(CANARY_VICTIM, 9)
import time
time.sleep(0.1)
