# attacks its session with a segmentation fault
# ends: variously
import ctypes
ctypes.string_at(1)
