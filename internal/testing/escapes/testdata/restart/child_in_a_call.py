# forks while the host answers a call, and both ask
# harm: kills
# ends: variously
# with: late_call
start()
import os
os.fork()
try: ask('x')
finally: os._exit(1)
