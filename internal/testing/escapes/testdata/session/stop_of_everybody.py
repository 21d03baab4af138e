# attacks its session by a stop of everybody
# ends: variously
import os, signal
os.kill(-1, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
