# attacks its session with a flood of long answers
# ends: variously
import os, struct
r = b'x' * 200000
while True: os.write(3, struct.pack('<IBI', 4 + len(r), 113, 7) + r)
