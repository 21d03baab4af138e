# attacks its session by a stop of itself
# ends: variously
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
