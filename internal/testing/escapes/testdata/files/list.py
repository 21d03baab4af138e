# lists a folder of the host
# local: mounts landlock namespaces
import os
if 'doomed' in os.listdir(CANARY_OPEN): print(CANARY_PROOF)
