# writes a text into the name of its process
import os
import ctypes
ctypes.CDLL(None).prctl(15, b'rlm-to-you', 0, 0, 0)
# in another sandbox
import os
for p in os.listdir('/proc'):
    try:
        if open(f'/proc/{p}/comm').read().strip() == 'rlm-to-you': print(CANARY_PROOF)
    except OSError: pass
