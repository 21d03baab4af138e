# attacks its session with a signal to the parent
# ends: variously
import os
os.kill(os.getppid(), 9)
