# attacks its session by another start
# ends: variously
import os
os.write(3, b'\x0c\0\0\0y' + bytes(12))
