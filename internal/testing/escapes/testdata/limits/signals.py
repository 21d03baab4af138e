# queues 20,000 signals for itself
# local: rlimits
# docker: limits
# where: users may have as many signals
# fresh: it has its signals
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
for i in range(20_000):
    if libc.sigqueue(os.getpid(), 40, ctypes.c_void_p(0)): raise OSError(ctypes.get_errno(), f'signal {i} is refused')
print(CANARY_PROOF)
