# makes 20,000 timers
# local: rlimits
# docker: limits
# where: users may have as many signals
# fresh: it has its timers
import ctypes
libc, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
for i in range(20_000):
    if libc.timer_create(1, None, ctypes.byref(timer)): raise OSError(ctypes.get_errno(), f'timer {i} is refused')
print(CANARY_PROOF)
