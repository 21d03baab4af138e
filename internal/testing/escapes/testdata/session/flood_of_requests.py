# attacks its session with a flood of requests
# ends: variously
import os, struct
r = b'i'
while True: os.write(3, struct.pack('<IBI', 4 + len(r), 113, 7) + r)
