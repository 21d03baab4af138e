# terminates a process of the host
import os, signal
os.kill(CANARY_VICTIM, signal.SIGTERM)
import time
time.sleep(0.1)
