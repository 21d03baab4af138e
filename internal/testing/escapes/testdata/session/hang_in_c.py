# attacks its session by hanging in C code
# ends: variously
import ctypes
ctypes.CDLL(None).pause()
while True: ctypes.CDLL(None).pause()
