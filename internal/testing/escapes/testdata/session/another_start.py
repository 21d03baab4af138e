# attacks its session with a forged start message
# ends: variously
import os
os.write(3, b'\x0c\0\0\0y' + bytes(12))
