# leaves a thread that changes a builtin for the next tenant
# one: process
import threading, time, builtins
def later():
    time.sleep(0.1)
    builtins.len = lambda of: 41
threading.Thread(target=later).start()
# in the next sandbox
import time
time.sleep(0.4)
if len([]) == 41: print(CANARY_PROOF)
