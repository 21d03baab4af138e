# stops its process while the host answers a call
# harm: hangs
# ends: variously
# with: late_call
start()
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
