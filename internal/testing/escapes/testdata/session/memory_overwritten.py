# attacks its session by memory overwritten
# ends: variously
import ctypes
ctypes.memset(id(1), 0, 1 << 24)
