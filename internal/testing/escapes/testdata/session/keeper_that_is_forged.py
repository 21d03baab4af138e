# attacks its session with forged process numbers of the keeper
# ends: variously
import os, struct
for pid in (1, 2, 0, os.getpid(), 4000000): os.write(3, struct.pack('<IBI', 4, 107, pid))
os._exit(0)
