# attacks its session with a signal to its group
# ends: variously
import os
os.kill(0, 9)
