# attacks its session by a hang in C
# ends: variously
import ctypes
ctypes.CDLL(None).pause()
while True: ctypes.CDLL(None).pause()
