# attacks its session with a forged end message
# ends: variously
import os, struct
os.write(3, struct.pack('<IBiQ', 12, 100, 0, 0))
x = 'later'
