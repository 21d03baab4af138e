# looks for the process of another tenant and signals it
import os
print(os.getpid())
import ctypes
ctypes.CDLL(None).prctl(15, b'rlm-victim', 0, 0, 0)
# in another sandbox
import os
for p in os.listdir('/proc'):
    try:
        if open(f'/proc/{p}/comm').read().strip() == 'rlm-victim':
            os.kill(int(p), 0)
            print(CANARY_PROOF)
    except OSError: pass
