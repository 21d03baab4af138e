# makes a pipe with a name for another tenant
import os
if not os.path.exists('/tmp/rlm-pipe-for-others'): os.mkfifo('/tmp/rlm-pipe-for-others')
held = os.open('/tmp/rlm-pipe-for-others', os.O_RDWR | os.O_NONBLOCK)
os.write(held, CANARY_PROOF.encode())
# in another sandbox
import os
print(os.read(os.open('/tmp/rlm-pipe-for-others', os.O_RDONLY | os.O_NONBLOCK), 99))
import os
os.remove('/tmp/rlm-pipe-for-others')
