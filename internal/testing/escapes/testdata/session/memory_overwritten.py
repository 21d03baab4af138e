# attacks its session by overwriting memory
# ends: variously
import ctypes
ctypes.memset(id(1), 0, 1 << 24)
