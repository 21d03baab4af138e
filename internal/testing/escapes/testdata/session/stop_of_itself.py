# attacks its session by stopping its own process
# ends: variously
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
