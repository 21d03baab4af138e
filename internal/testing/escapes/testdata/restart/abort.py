# aborts while the host answers a call
# harm: kills
# ends: variously
# with: late_call
start()
import os
os.abort()
