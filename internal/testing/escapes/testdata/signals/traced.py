# attaches to a host process with ptrace
import ctypes, os, platform
c = ctypes.CDLL(None, use_errno=True)
pid = os.fork()
if pid == 0: os._exit(0 if c.ptrace(16, CANARY_VICTIM, 0, 0) == 0 else 1)
if os.waitpid(pid, 0)[1]: raise OSError('refused')
print(CANARY_PROOF)
