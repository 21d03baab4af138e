# attacks its session with the strict mode of seccomp
# ends: variously
import ctypes
ctypes.CDLL(None).prctl(22, 1, 0, 0, 0)
