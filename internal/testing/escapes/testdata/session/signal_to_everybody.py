# attacks its session with a signal to all processes
# ends: variously
import os
os.kill(-1, 9)
