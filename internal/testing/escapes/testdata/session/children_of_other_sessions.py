# attacks its session with children in sessions of their own that ignore all signals
# ends: variously
import os, signal
for _ in range(10):
    if os.fork() == 0:
        os.setsid()
        for s in set(range(1, 65)) - {9, 19, 32, 33}: signal.signal(s, signal.SIG_IGN)
        if os.fork() == 0:
            while True: os.write(3, bytes(100))
        os._exit(0)
while True: pass
