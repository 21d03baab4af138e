# makes a file of 8 GiB
# local: mounts landlock namespaces rlimits
# fresh: its disk is full
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open('long', 'wb') as f: f.truncate(1 << 33)
print(CANARY_PROOF)
