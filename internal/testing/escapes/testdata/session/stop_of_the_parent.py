# attacks its session by stopping the parent
# ends: variously
import os, signal
os.kill(os.getppid(), signal.SIGSTOP)
os._exit(0)
