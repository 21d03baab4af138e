# attacks its session with a fault
# ends: variously
import ctypes
ctypes.string_at(1)
