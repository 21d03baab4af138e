# attacks its session by stopping all processes
# ends: variously
import os, signal
os.kill(-1, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
