# leaves a file for another tenant in /dev/shm
with open('/dev/shm/rlm-for-others', 'w') as f: f.write(CANARY_PROOF)
# in another sandbox
print(open('/dev/shm/rlm-for-others').read())
import os
os.remove('/dev/shm/rlm-for-others')
