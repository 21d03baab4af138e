# leaves a file for another tenant in /tmp
import os
with open('/tmp/rlm-for-others', 'w') as f: f.write(CANARY_PROOF)
# in another sandbox
print(open('/tmp/rlm-for-others').read())
import os
os.remove('/tmp/rlm-for-others')
