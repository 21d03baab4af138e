# attacks its session with an end with another code
# ends: variously
import os, struct
os.write(3, struct.pack('<IBiQ', 12, 100, 77, 1 << 63))
