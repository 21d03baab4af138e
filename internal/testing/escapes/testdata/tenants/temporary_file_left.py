# leaves a file for the next tenant in /tmp
with open('/tmp/rlm-for-the-next', 'w') as f: f.write(CANARY_PROOF)
# in the next sandbox
print(open('/tmp/rlm-for-the-next').read())
import os
os.remove('/tmp/rlm-for-the-next')
