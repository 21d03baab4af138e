# attacks its session by stopping itself
# ends: variously
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
