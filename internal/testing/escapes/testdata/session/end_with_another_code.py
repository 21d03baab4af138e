# attacks its session with a forged end message that has another code
# ends: variously
import os, struct
os.write(3, struct.pack('<IBiQ', 12, 100, 77, 1 << 63))
