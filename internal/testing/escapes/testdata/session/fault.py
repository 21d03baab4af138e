# attacks its session by a fault
# ends: variously
import ctypes
ctypes.string_at(1)
