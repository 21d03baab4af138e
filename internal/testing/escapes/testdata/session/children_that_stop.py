# attacks its session with children that stop and keep its connection
# ends: variously
import os, signal
for _ in range(10):
    if os.fork() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
os.kill(os.getpid(), signal.SIGSTOP)
