# breaks its interpreter while the host answers a call
# harm: kills
# ends: variously
# with: late_call
start()
import ctypes
ctypes.string_at(1)
