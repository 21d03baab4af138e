# becomes another program while the host answers a call
# harm: hangs
# ends: variously
# with: late_call
start()
import os
os.execv('/bin/sleep', ['sleep', '600'])
