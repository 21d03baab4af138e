# attacks its session by posing as the keeper
# ends: variously
import os, struct
os.write(3, struct.pack('<IBI', 4, 107, os.getpid()))
while True:
    try:
        while True: pass
    except BaseException: pass
